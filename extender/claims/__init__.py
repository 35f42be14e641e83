"""Resource claims of pods: caches them, reads what they ask Slurm for, and gives them the devices that Slurm chose."""
