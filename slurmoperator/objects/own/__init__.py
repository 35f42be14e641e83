"""Our extensions of SchedMD's slurm-operator: the kind SlurmCluster, and worker profiles."""
