"""The machinery of a leader: lease, work queue, workers. It does not know about pods.

May import `slurmruntime.process`, `bridge.settings` and `bridge.domain`.
"""
