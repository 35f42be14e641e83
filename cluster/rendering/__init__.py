"""Turn the objects of a cluster into what Kubernetes is to have: bodies for server-side apply, and pods.

`overlay` lays what a user wrote over what we make, `worker` makes a worker's pod. Pure: what is looked up elsewhere, such as the
names of Secrets, comes in as arguments.
"""
