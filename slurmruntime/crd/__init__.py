"""Kubernetes objects of our own kinds: the base of their types, and their definitions."""
