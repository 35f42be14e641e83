"""slurm-operator in a sandbox: it builds a Slurm in pods of real nodes.

`images` has Slurm's images, `serving` the operator's process with the rights and settings that its chart gives it, `names`
what a cluster has and this host lacks: the names of Services. `demo` shows it.
"""
