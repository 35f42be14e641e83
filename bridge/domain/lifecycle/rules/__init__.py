"""The cells of the lifecycle's table: each rule says what to do in one situation, and why.

A rule's docstring is its text in `docs/lifecycle.md`; anything else about it is a comment. No rule
asks whether the view is fresh: `lifecycle.decide` holds back actions that were decided on a stale
one.
"""
