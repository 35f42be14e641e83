"""The admission checks: what the webhook does with a new pod, and whether a pod may be bound.

This package may import `request`, `workloads` and `model`.
"""
