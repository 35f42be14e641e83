"""A leader's machinery: the lease, the work queue, its workers. It knows no pod.

It may enter `bridge.process`, `bridge.settings` and `bridge.domain`.
"""
