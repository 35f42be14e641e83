"""Resource claims of pods: what is known of them, what they ask Slurm for, and giving them the devices that Slurm chose."""
