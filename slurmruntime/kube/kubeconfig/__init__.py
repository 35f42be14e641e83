"""The API server's address and our credentials, from kubeconfigs or service accounts, and their renewal."""
