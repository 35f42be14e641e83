"""The node agent: pins the containers of one external node to the cores that Slurm gave their pods."""
