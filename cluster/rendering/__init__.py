"""Turn the objects of a cluster into what Kubernetes is to have: bodies for server-side apply, and workers' pods.

`controller`, `accounting`, `restapi` and `loginset` make all that belongs to one object; `nodeset` does so for a NodeSet, whose
pods `worker` makes one by one. `body` is what they return, `site` what they need to know besides the objects. `pods`, `services`
and `ssh` are what several of them share, `overlay` lays what a user wrote over what we make, and `differences` lists where that
is not what SchedMD's slurm-operator makes. Pure: the same objects give the same bytes.
"""
