"""Devices and cores: who chooses them on a node, and whether two could get the same."""
