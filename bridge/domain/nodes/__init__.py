"""Keep nodes in step: which side decides, how Slurm sees a node, and what Kubernetes shows.

This package may import `request` (for restored placeholders), `lifecycle`, `observation` and
`model`.
"""
