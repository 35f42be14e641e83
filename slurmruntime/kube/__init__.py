"""A client of the API server: requests, lists, watches, caches, leases and writes."""
