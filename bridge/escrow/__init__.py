"""The door for a site's PrologSlurmctld and EpilogSlurmctld (docs/escrow.md).

slurmctld's scripts tell of a job's start and end, and ask whether a job may be launched. What they tell
is only a hint: Slurm is read again before anything follows from it.
"""
