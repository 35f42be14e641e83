"""The batch jobs of SlurmJobs: `calls` submits, cancels and looks them up, `decoding` reads what Slurm says of them."""
