"""slurm-operator: Slurm itself as Kubernetes objects.

`objects` has the six kinds that describe a cluster, our own SlurmCluster, and the definitions that an API server gets. `configuration`
makes Slurm's configuration from them, checks it, and says what a change of it takes. `workers` decides what happens to
a NodeSet's workers, and `rendering` what is to stand in the API server for each object. These are pure. `nodesets` carries
out what is decided for workers. `whole` makes objects of the six kinds from a SlurmCluster.
"""
