"""`make audit`: pip-audit over our locks, with a file of advisories instead of a service in the network."""
