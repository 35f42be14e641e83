"""The Slurm adapter: slurmrestd over HTTP, and the one message slurmrestd cannot send (`complete`).

Use the modules qualified: `jobs.submit(client, spec)`, `nodes.drain(client, name, reason)`. They
return values of `bridge.domain` and raise `slurmruntime.slurm.errors.SlurmError`.
"""
