"""The life of a NodeSet's workers: one pure decision table, and the modules that prepare its input.

`situation` holds the input of one decision, `actions` the possible results, and `rules` the cells of `table`. `readings` counts how
often Slurm has reliably shown a node without jobs, `choosing` picks the workers to remove when there are too many, and
`updating` those to replace. docs/nodeset-lifecycle.md is generated from the table.
"""
