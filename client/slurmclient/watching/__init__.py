"""`watch` and `cache`: pictures of Slurm's objects, kept up to date by polling.

Slurm has no watch. A `picture` holds the objects of one kind and compares them with Slurm at every
poll; `picture_by_name` does so for nodes, partitions and reservations, `job_picture` for jobs, by their
`states` and the `identity` of each. `polling` repeats the polls and yields `events`. `cache` keeps a picture in memory
and passes its events to handlers, each with a `backlog` of its own.
"""
