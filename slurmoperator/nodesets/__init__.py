"""The controller of NodeSets: watches them and their workers, plans, and acts.

`nodeset` and `worker_pods` define how the watched objects are read and written, and `slurm_view` reads Slurm. `gathering` makes the
facts of one look from them, `plan` (pure) plans with `slurmoperator.workers` and computes the status, and `actuator` carries a plan out.
Each other subject has one place, where its decision stands beside the code that carries it out: `preparation`, `revisions`, `volumes`,
`windows`, `topology`, `records` and `pod_conditions`. `loop` puts all of this in order, and `assembly` wires it for one process. Rendering
a worker's pod is passed in.
"""
