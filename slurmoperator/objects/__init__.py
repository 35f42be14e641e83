"""The six kinds that describe a Slurm cluster, with the fields and defaults of SchedMD's slurm-operator.

One module for each kind has its fields and its rules in CEL; `parts` has what several of them share. `kinds` lists
them, and `definitions` writes their CustomResourceDefinitions.

Source of fields, names and defaults: slurm-operator 1.3.0-rc1.
"""
