"""The controllers of nodes: keeping both systems' nodes in step, names of jobs, fillers.

Of `controllers.pods` only `holds` knows anything: what it asks and restores there.
"""
