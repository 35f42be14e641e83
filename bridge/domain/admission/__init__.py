"""The guards at both doors: what the webhook makes of a new pod, and whether a binding may be.

It may enter `request`, `workloads` and `model`.
"""
