"""Poll Slurm, for one side of a leader or for both."""
