"""The controllers of nodes: node registration, job node lists, fillers.

Only `holds` knows `controllers.pods`: what is being looked up and restored there.
"""
