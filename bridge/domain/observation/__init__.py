"""What one leader knows of the two systems, and since when: views, the book of writes, deletions, turns.

It may enter `model`.
"""
