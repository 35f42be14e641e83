"""Decide whose Slurm job a SlurmJob becomes and whether its requests are allowed, by the same policy as for pods.

`asking` puts a script's requests in the policy's terms, and `permission` decides on an object as it is stored.
"""
