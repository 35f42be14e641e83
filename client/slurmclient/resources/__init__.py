"""What slurmctld has: jobs, nodes, partitions, reservations, licenses, shares.

`collection` lists and gets objects of any kind, `watched` adds `watch` and `cache`. `jobs` builds on
`submission`, which submits a job at most once, `keys`, which decides about the jobs with one key, and
`job_states`. `cluster` has everything else.
"""
