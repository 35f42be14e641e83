"""The settings: their schema, their sources and their reference documentation.

May import `bridge.domain`.
"""
