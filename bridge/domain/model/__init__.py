"""What both systems report, as values: pods, nodes, jobs, demands, allocations, owners, leases.

It knows no rule. It may enter no other room, only the files on the ground (`names`, `ids`, `quantities`, ...).
"""
