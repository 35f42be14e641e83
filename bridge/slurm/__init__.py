"""Slurm's side: slurmrestd over HTTP, and the one message that slurmrestd cannot send (`complete`).

Modules are used qualified: `jobs.submit(client, spec)`, `nodes.drain(client, name, reason)`. What comes back is in the
words of `bridge.domain`; what goes wrong is a `bridge.slurm.errors.SlurmError`.
"""
