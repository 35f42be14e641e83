"""Real nodes: kubelet, containerd, runc and kube-proxy, each node in a box of its own.

A box is a set of namespaces over a shared read-only root: it ends with its first process, and nothing
of it is mounted on the host. The host has one bridge for each sandbox and cgroups for each node; they
are named after the sandbox's folder, so they are found again after a crash.
"""
