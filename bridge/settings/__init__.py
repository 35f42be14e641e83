"""What can be set: its schema, where it is read from, and how it is told to people.

It may enter `bridge.domain`.
"""
