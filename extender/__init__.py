"""Answers kube-scheduler and, as the elected leader, places pods where Slurm says."""
