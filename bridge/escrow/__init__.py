"""The endpoint for a site's PrologSlurmctld and EpilogSlurmctld (docs/escrow.md).

slurmctld's scripts report a job's start and end, and ask whether a job may be launched. A report is only
a hint: Slurm is read again before anything follows from it.
"""
