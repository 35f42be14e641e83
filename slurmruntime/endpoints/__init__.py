"""Reach the Slurm of a Controller object of slurm-operator: its address and a token come from its objects.

`finding` (pure) says which slurmrestd to ask and which key signs, `objects` reads what that depends on, `signing` signs
short tokens, `transport` sends requests to wherever the objects say that slurmrestd is now, and `opening`
opens a client from these.
"""
