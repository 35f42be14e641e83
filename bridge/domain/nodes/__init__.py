"""Keep nodes in step: what is planned for one node, and what Slurm must not hand out of it.

This package may import `lifecycle`, `observation` and `model`.
"""
