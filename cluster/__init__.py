"""slurm-operator: Slurm itself as Kubernetes objects.

`objects` has the six kinds that describe a cluster, and the definitions that an API server gets. All of it is pure;
there is no controller yet that carries anything out.
"""
