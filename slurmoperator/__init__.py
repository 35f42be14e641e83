"""slurm-operator: Slurm itself as Kubernetes objects.

Pure: `objects` has the six kinds that describe a cluster, our own SlurmCluster, and their definitions for the API server.
`configuration` renders Slurm's configuration from them, checks it, and says what a change needs to take effect. `workers`
decides what happens to a NodeSet's workers, and `rendering` which Kubernetes objects each of ours needs.

Controllers: `daemons` runs the control plane, `nodesets` the workers, and `clusters` makes objects of the six kinds from a
SlurmCluster. `keys` has the daemons' keys and what they sign; `diagnosis` describes the state of a cluster for people.
"""
