"""The controllers' side of pods: evidence lookup, restoring, circuit breaker, orphans.

It does not depend on `controllers.nodes.controller` or `controllers.webhook`.
"""
