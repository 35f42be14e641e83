"""What slurmrestd can be asked: the table of operations, and each of them as JSON."""
