"""`kubectl slurm doctor`: read both systems, and name what is wrong with the installation."""
