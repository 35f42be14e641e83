"""What one leader knows about both systems, and since when: views, expectations, deletions, turns.

It may import `model`.
"""
