"""From what a pod asks for to the job that is submitted, or to everything that is wrong with it.

`effective` is the way in: everything that was read goes in, a placeholder or every fault comes out. It calls `overrides`, which
reads the annotations (`notation`: how values are written), `attribution`, which decides whose job it is, `rules` and `permit`,
which decide what the administrator's policy allows, and `build`, which writes the placeholder for the nodes of `candidates`.

`fit` and `selection` repeat Kubernetes' own rules, `revision` compares a waiting job with what would be submitted now,
`manifests` finds the pod templates in a manifest, and `expected` the pods that follow from them.

The folder knows pods, nodes, workloads and the placeholder; it does not know the lifecycle (but for the type `facts.Fit`).
"""
