"""The state of a worker's Slurm node, as conditions and annotations of its pod."""
