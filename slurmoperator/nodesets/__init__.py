"""The controller of NodeSets: watches them and their workers, plans, and acts.

`nodeset` and `worker_pods` define how the watched objects are read and written, and `slurm_view` reads Slurm. `gathering` makes the
facts of one look from them, `plan` (pure) plans with `slurmoperator.workers` and computes the status, `actuator` carries a plan out,
and `owned` holds what else a NodeSet has. `loop` puts these in order, and `assembly` wires them for one process. Rendering a worker's
pod is passed in.
"""
