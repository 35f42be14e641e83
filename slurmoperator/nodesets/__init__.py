"""The controller of NodeSets: watches them and their workers, decides by `slurmoperator.workers`, and carries that out.

`nodeset` and `worker_pods` are what is watched, and how it is written. `slurm_view` reads Slurm, `planning` (pure) says
which workers there are to be and what is known of each, `actuator` carries decisions out, `belongings` keeps what else a NodeSet has, `status` (pure) says what a
NodeSet is told, `owned.told_states` tells workers' pods how Slurm has them, `loop` puts gather, decide and act in order, `assembly` makes them for one process, and `program` is that
process. What a worker's pod looks like, they are given.
"""
