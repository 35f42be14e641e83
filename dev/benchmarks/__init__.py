"""How fast slurm-bridge is, and what it costs, on real Kubernetes and real Slurm: `make bench`."""
