"""What every process needs: settings, logs, metrics, health, serving, leases, queues."""
