"""All jobs as last read, and the events since.

`tally` counts the events between two readings of a job, `table` keeps the jobs.
All of it is pure: times are arguments, and nothing here asks Slurm.
"""
