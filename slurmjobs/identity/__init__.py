"""Whose Slurm job a SlurmJob becomes, and whether it may have what it asks for: by the policy that pods have.

`asking` says what a script asks for in the policy's terms, `permission` decides on an object as it is stored, and
`granting` writes the decision into the request.
"""
