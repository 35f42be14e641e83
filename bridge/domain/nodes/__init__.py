"""Keep nodes in step: which side decides, how Slurm sees a node, and what Kubernetes shows.

This package may import `lifecycle`, `observation` and `model`.
"""
