"""Cores: which processors of a machine are those that Slurm gave, and which containers are pinned to them."""
