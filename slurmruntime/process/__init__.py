"""What every process needs: clock, services and shutdown, TLS serving, health, logs, metrics."""
