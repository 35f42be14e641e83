"""`kubectl slurm take-over`: make what runs under SchedMD's slurm-bridge ours."""
