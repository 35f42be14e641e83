"""What SchedMD's slurm-operator does not have: our own kind, and the profiles of workers."""
