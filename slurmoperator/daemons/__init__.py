"""The controller of all kinds but NodeSet: the daemons that a whole cluster shares, login pods, and tokens.

`part` defines what is watched and how its status is written. A look goes once through `gathering`, which reads the facts, `planning` (pure),
which says what the object gets, `acting`, which takes the named steps, and `conditions` (pure), which reports what was seen; `loop` calls
them, and `situation` has the facts and the plan. `deciding` (pure) says whether a new configuration may come into force, from the verdicts
that `trials` reads out of logs. `partition_readings` asks Slurm, `rest_tls` has certificates, `key_rings` the daemons' keys, `workload` the
state of pods. `leaving` keeps deleted objects while others need them, and `assembly` builds the controller for one process.
"""
