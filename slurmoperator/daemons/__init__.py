"""The controller of all kinds but NodeSet: the daemons that a whole cluster shares, login pods, and tokens.

`part` defines what is watched and how its status is written. `gathering` reads what an object refers to, `rest_tls` what slurmrestd
needs for TLS; `deciding` (pure) computes the desired objects and whether a new configuration may come into force; `workload` reads the
state of its pods, `conditions` (pure) computes its status. `key_rings` reads and writes the versions of the daemons' key, and
`rotating` finds out who uses which. `leaving` keeps deleted objects while others need them, `loop` runs the steps in order, and
`assembly` builds the controller for one process.
"""
