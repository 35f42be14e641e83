"""The life of a NodeSet's workers: one pure decision table, and the modules that prepare its input.

`situation` holds the input of one decision, `actions` the possible results, and `rules` the cells of `table`. `readings` counts how
often Slurm has reliably shown a node without jobs, `choosing` picks the workers to remove when there are too many, `placing` the
Kubernetes nodes that get a worker when each fitting node has one, `pinning` the node that a worker returns to. `node_states` shows
Slurm's states as conditions of pods. docs/nodeset-lifecycle.md is generated from the table.
"""
