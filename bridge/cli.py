"""The command `slurm-bridge`."""
