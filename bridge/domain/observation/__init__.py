"""What one leader knows of both systems, and since when: views, expectations, deletions, turns.

It may import `model`.
"""
