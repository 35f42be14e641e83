"""Reach the Slurm of a Controller object of slurm-operator: its address and a token come from its objects."""
