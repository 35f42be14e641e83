"""The batch jobs of SlurmJobs: `calls` submits, cancels and looks them up; `decoding` decodes Slurm's records."""
