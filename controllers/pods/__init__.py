"""The controllers' side of pods: evidence of what is gone, restoring, the circuit breaker, orphans.

It knows neither `controllers.nodes.controller` nor `controllers.webhook`.
"""
