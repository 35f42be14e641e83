"""How to reach the API server, and as whom: kubeconfigs, service accounts, and keeping both fresh."""
