"""Commands about a Slurm in pods: its overview page, `why` for its objects, and the doctor's checks.

Only this package of the command line imports `slurmoperator`, and the commands import it only for such an object.
"""
