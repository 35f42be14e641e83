"""The controllers of nodes: node registration, job node lists, fillers.

Only `gathering` depends on `controllers.pods`, for what is being looked up and restored there.
"""
