"""Which pods belong together, and how many of them there must be.

`claims` maps a pod to its workload; `workload` evaluates the members of one. What differs from kind
to kind is in `kinds`, one file each, behind the protocols of `membership`; a new kind is a file
there and a line in its list. Nothing here knows Slurm: the request to it is built elsewhere.
"""
