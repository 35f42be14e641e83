"""The controller of SlurmClusters, from each of which objects of the six kinds are made.

`slurm_cluster` is what is watched and how it is written, `expanding` (pure) says which objects there are to be, `yielding` (pure)
leaves others the fields that they own, `summary` (pure) says how a cluster stands, `loop` puts them in order, and `assembly` makes
them for one process. What those objects become is the matter of their own controllers.
"""
