"""Slurm's answers as values: only the fields that some metric uses, in base units."""
