"""The Kubernetes adapter: the only code that reads or writes the API server."""
