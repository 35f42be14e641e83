"""Pictures of what Slurm has, kept up to date, and their events."""
