"""Read what a running job has on its nodes: tasks, resources, CPUs and devices, as Slurm numbers them."""
