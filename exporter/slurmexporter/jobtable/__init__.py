"""All jobs as last read, and the events since.

`happenings` finds the events between two readings of a job, `tally` counts them, `table` keeps the jobs.
All of it is pure: times are arguments, and nothing here asks Slurm.
"""
