"""Keeps both sides true after placement: endings, nodes, orphans."""
