"""The node agent: gives the containers of one external node the very cores that Slurm gave their pods."""
