"""All jobs as they were last read, and what has happened to them since.

`happenings` says what lies between two readings of a job, `tally` counts it, `table` keeps the jobs.
All of it is pure: moments are arguments, and nothing here asks Slurm.
"""
