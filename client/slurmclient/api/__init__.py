"""What slurmrestd offers; `dev/generate` makes the table of `operations` and `raw`, with a method for each."""
