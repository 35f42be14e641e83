"""What both systems report, as values: pods, nodes, jobs, demands, allocations, owners, leases.

It knows no rules. It imports no other folder, only the files directly in `bridge.domain` (`names`,
`ids`, `quantities`, ...).
"""
