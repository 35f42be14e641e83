"""Diagnose for people: why a pod waits, the queue, the nodes' states, faults of an installation.

This package may import `lifecycle` and `model`. No decision depends on it.
"""
