"""Nodes of both worlds, leases and other objects as values."""
