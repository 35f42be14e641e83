"""What very many pods, nodes and jobs of strangers cost: `make bench-scale`."""
