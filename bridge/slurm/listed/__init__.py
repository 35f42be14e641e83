"""List all of Slurm's jobs: their states, from which slurmctld, and which unknown jobs to fetch first."""
