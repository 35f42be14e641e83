"""Renders the objects of a cluster: bodies for server-side apply, and workers' pods.

`controller`, `accounting`, `restapi`, `loginset`, `token` and `node_sets` each render all that belongs to one object. They return `body`
values, and `site` holds what they need besides the objects. `pods`, `access` and `ssh` are shared. `overlay` merges the user's overrides
into our specifications, `leftovers` lists what must be deleted, and `differences` lists where we differ from SchedMD's slurm-operator.
Pure: the same objects give the same bytes.
"""
