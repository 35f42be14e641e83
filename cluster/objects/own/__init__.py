"""Our own kind, which SchedMD's slurm-operator does not have."""
