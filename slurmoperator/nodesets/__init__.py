"""The controller of NodeSets: watches them and their workers, decides, and acts.

`nodeset` and `worker_pods` define how the watched objects are read and written. `slurm_view` reads Slurm, `planning` (pure)
determines with `slurmoperator.workers` which workers there should be and what is known of each, `actuator` carries decisions out,
`status` (pure) computes a NodeSet's status, and `owned` holds everything else that a NodeSet has. `loop` puts gather, decide and act
in order, and `assembly` wires them for one process. Rendering a worker's pod is passed in.
"""
