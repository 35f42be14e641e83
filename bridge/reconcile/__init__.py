"""The loop over workloads that extender and controllers share: what is known, what is decided, carrying it out.

It may enter everything below: `leading`, `process`, `settings`, the adapters and `bridge.domain`.
"""
