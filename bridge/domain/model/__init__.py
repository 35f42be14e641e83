"""What both systems report, as values: pods, nodes, jobs, demands, allocations, owners, leases.

It knows no rules, but for what a device is: `claims` and `devices` say which of them Slurm and
Kubernetes mean by the same. It imports no other folder, only the files directly in `bridge.domain`
(`names`, `ids`, `quantities`, ...).
"""
