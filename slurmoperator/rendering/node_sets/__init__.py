"""Renders a NodeSet: its workers' pods, one by one, and the objects that they share.

`worker` renders a pod, `claims` its volumes, `leaving` its preStop hook, and `nodeset` the rest.
"""
