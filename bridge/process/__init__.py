"""What every process needs: a clock, its parts and their end, serving over TLS, health, logs and metrics.

It may enter `bridge.settings` and `bridge.domain`.
"""
