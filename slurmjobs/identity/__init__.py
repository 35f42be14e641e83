"""Decide whose Slurm job a SlurmJob becomes and whether its requests are allowed, by the same policy as for pods.

`asking` puts a script's requests in the policy's terms, `permission` decides on an object as it is stored, and
`granting` writes the decision into the request.
"""
