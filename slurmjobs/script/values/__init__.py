"""How values of sbatch's options are written: each form reads a text, and writes what it has read."""
