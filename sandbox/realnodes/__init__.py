"""Real nodes: kubelet, containerd, runc and kube-proxy, each node in a box of its own.

A box is a set of namespaces over a shared read-only root: one process ends it with all it holds,
and nothing of it is mounted on the host. What the host does have, one bridge for each sandbox and
cgroups for each node, is named after the sandbox's folder, so it is found again after a crash.
"""
