"""Who is let in: the web configuration of Prometheus' exporter-toolkit, and bounds on connections.

It knows nothing of Slurm or metrics.
"""
