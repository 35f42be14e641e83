"""Keeps both systems consistent after placement: endings, nodes, orphans."""
