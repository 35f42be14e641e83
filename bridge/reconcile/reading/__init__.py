"""Reading Slurm in turn, for one side of a leader or for both."""
