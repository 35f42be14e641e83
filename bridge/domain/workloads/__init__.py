"""Which pods belong together, and how many of them there have to be.

`membership` says which workload a pod belongs to, `workload` what the members of one amount to. Nothing here knows
Slurm: what is asked of it follows elsewhere.
"""
