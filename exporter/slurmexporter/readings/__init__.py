"""What Slurm answers, as values: only the fields that something is made of, in base units."""
