"""What the programs of slurm-bridge share: the domain, the two adapters and the runtime."""

__version__ = "0.2.0"
