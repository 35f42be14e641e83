"""What both systems report, as values: pods, nodes, jobs, demands, allocations, owners, leases.

It knows no rules, except for devices: `claims` and `devices` define which devices of Slurm and of
Kubernetes are the same. It imports no other folder of `bridge.domain`.
"""
