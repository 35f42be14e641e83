"""The reconcile loop that the extender and the controllers share: gather, decide, act.

It may import every layer below it: `leading`, `process`, `settings`, the adapters and
`bridge.domain`.
"""
