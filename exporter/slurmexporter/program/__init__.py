"""The command `slurm-exporter`.

`arguments` reads flags and the environment, `check` says what works, `cli` runs it all.
"""
