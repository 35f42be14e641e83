"""The floor: the requests that a pod through Slurm cannot do without, made by a client that decides nothing."""
