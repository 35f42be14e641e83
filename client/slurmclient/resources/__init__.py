"""slurmctld's objects: jobs, nodes, partitions, reservations, licenses, shares.

`collection` lists and gets objects of any kind, `watched` adds `watch` and `cache`. `jobs` builds on
`submission`, which submits a job at most once, `keys`, which chooses among the jobs with one key, and
`job_states`. `cluster` has everything else.
"""
