"""The command `slurm-exporter`.

`arguments` parses flags and the environment, `check` reports what works, `cli` runs everything.
"""
