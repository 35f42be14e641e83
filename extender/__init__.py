"""Answers kube-scheduler and, as the elected leader, places pods on the nodes that Slurm chose."""
