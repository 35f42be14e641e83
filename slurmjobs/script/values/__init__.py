"""The forms of sbatch's option values: each reads a text."""
