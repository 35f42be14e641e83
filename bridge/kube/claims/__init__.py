"""Resource claims in Kubernetes: what they ask for, and what they were given."""
