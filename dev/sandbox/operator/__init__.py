"""slurm-operator in a sandbox: it builds a Slurm in pods of real nodes.

`images` has Slurm's images, `serving` the operator's process with the rights and settings of its chart, `names` resolves
Service names on this host, as a cluster's DNS does in pods. `demo` shows it.
"""
