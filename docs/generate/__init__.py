"""Writes the pages and files that are made from code: `make docs` runs all of it, tests fail while they differ.

It may import anything; no program imports it, and neither the image nor the site carries it.
"""
