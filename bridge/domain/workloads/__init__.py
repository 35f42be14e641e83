"""Which pods belong together, and how many of them there have to be.

`claims` says which workload a pod belongs to, `workload` what the members of one amount to. What differs from kind to kind is
in `kinds`, one file for each, behind the protocols of `membership`; a new kind is a file there and its line in the list.
Nothing here knows Slurm: what is asked of it follows elsewhere.
"""
