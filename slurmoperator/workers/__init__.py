"""What happens to the workers of a NodeSet: one pure table, and what it is fed with.

`situation` is what one decision depends on, `actions` what it may ask for, `rules` are the cells of `table`. `readings`
remembers how often Slurm has surely shown a node without jobs, `choosing` says which workers go when there are too
many, `placing` which Kubernetes nodes have one if there is one on each, `pinning` to which one a worker returns, and `node_states` how Slurm's states are told on pods. docs/nodeset-lifecycle.md is generated from the table.
"""
