"""slurm-exporter: Prometheus metrics of a Slurm, read through slurmrestd with slurm-client.

program     the command: flags, `--once`, `--check`
serving     the pages as bytes, and the HTTP server
collecting  reads Slurm on schedules, politely
families    what is exported: readings in, samples out (own names, slurm-exporter's, slurmctld's, vpenso's)
jobtable    all jobs as they were last read, and what has happened to them
readings    what Slurm answers, as values
text        families, samples, and their text format

A scrape never asks Slurm: it gets the bytes that the last readings made.
"""
