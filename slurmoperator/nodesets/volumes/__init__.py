"""Volumes of workers: created before the worker, reused by its ordinal, and deleted when unneeded."""
