"""The six kinds that describe a Slurm cluster, with the fields and defaults of SchedMD's slurm-operator.

Each kind has a module with its fields and its CEL rules; `parts` holds what several kinds share. `kinds` lists them,
and `definitions` generates their CustomResourceDefinitions.

Source of fields, names and defaults: slurm-operator 1.3.0-rc1.
"""
