"""The Slurm adapter: the only code that reads or writes slurmrestd and slurmctld."""
