"""A client of slurmrestd for controllers: where it is, its errors, its records."""
