"""The controller of all kinds but NodeSet: the daemons that all of a cluster shares, login pods, and tokens.

`part` is what is watched, and how it is told its conditions. `gathering` reads what an object names, `rest_tls` with what slurmrestd speaks TLS, `deciding` (pure) says
what there is to be and whether a new configuration may come into force, `workload` reads how its pods stand, `conditions`
(pure) says what an object is told. `key_rings` reads and writes the steps of the daemons' key, and `rotating` says who has which.
`leaving` holds what is needed yet, `loop` puts them in order, and `assembly` makes them for one process.
"""
