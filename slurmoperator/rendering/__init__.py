"""Turn the objects of a cluster into what Kubernetes is to have: bodies for server-side apply, and workers' pods.

`controller`, `accounting`, `restapi`, `loginset`, `token` and `node_sets` make all that belongs to one object. `body` is what they return,
`site` what they need to know besides the objects. `pods`, `access` and `ssh` are what several of them share or could,
`overlay` lays what a user wrote over what we make, `leftovers` says what is to be gone, and `differences` lists where that is not what
SchedMD's slurm-operator makes. Pure: the same objects give the same bytes.
"""
