"""The controller of SlurmClusters: each is expanded into objects of the other kinds.

`slurm_cluster` defines what is watched and how its status is written, `expanding` (pure) computes the desired objects, `yielding` (pure)
leaves fields to the other managers that own them, `planning` (pure) says what becomes of each object, `summary` (pure) computes the status,
`loop` gathers, plans, acts and reports, and `assembly` builds the controller for one process. The controllers of the other kinds reconcile the objects themselves.
"""
