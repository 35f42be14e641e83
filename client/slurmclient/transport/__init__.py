"""HTTP exchanges with slurmrestd, without knowledge of what the requests mean."""
