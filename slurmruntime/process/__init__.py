"""What every process needs: clock, services and shutdown, TLS serving, health, logs, metrics.

May import `slurmruntime.settings`, `slurmruntime.model` and `slurmruntime.values`.
"""
