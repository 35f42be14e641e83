"""Nodes in step: whose word counts on a node, what Slurm is told of it, and what Kubernetes shows.

It may enter `request` (for restored placeholders), `lifecycle`, `observation` and `model`.
"""
