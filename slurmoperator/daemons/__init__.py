"""The controller of all kinds but NodeSet: the daemons that a whole cluster shares, login pods, and tokens.

`part` defines what is watched and how its status is written. A look goes once through `gathering`, which reads the facts, `planning` (pure),
which says what the object gets, `acting`, which takes the named steps, and `conditions` (pure), which reports what was seen; `loop` calls
them, and `situation` has the facts and the plan. `trials` (pure) reads the verdicts of daemons on a new configuration out of logs.
`partition_readings` asks Slurm, `rest_tls` has certificates, and `key_rings` replaces the daemons' keys. `leaving` keeps deleted objects
while others need them, and `assembly` builds the controller for one process.
"""
