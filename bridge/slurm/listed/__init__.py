"""What is known of all of Slurm's jobs: their states, of which slurmctld, and which of the unknown ones to fetch first."""
