"""The machinery of a leader: lease, work queue, workers. It does not know about pods.

May import `bridge.process`, `bridge.settings` and `bridge.domain`.
"""
