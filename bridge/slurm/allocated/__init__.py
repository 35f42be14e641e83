"""What a running job has on its nodes: tasks and resources, and which devices, as Slurm numbers them."""
