"""What a NodeSet has: its workers' pods, made one by one, and what belongs to all of them.

`worker` makes a pod, `leaving` what it does before its end, and `nodeset` the rest.
"""
