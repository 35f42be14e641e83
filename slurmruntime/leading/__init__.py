"""The machinery of a leader: lease, work queue, controllers. It does not know about pods."""
