"""`watch` and `cache`: pictures of Slurm's objects, kept up to date by polling, as Slurm has no watch."""
