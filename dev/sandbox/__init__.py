"""Real Kubernetes and real Slurm as plain processes, for the demo and the tests."""
