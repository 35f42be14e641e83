"""slurm-exporter: Prometheus metrics of a Slurm, read through slurmrestd with slurm-client.

program     the command: flags, `--once`, `--check`
serving     the pages as bytes, and the HTTP server
collecting  reads Slurm on schedules, politely
families    the exported metrics: readings in, samples out (own names, slurm-exporter's, slurmctld's, vpenso's)
jobtable    all jobs as last read, and the events between readings
readings    Slurm's answers as values
text        families, samples, and their text format

A scrape never asks Slurm: it gets bytes rendered after the last readings.
"""
