"""From what a pod asks for to the job that is submitted, or to everything that is wrong with it.

`overrides` reads the annotations (`notation`: how values are written), `rules` and `permit` decide what of it the administrator's policy allows, `candidates` says
which nodes the job may have, and `build` writes the placeholder. `fit` and `selection` repeat Kubernetes' own rules,
`revision` compares a waiting job with what would be submitted now, and `manifests` finds the pods in a manifest.

The folder knows pods, nodes, workloads and the placeholder; it does not know the lifecycle (but for the type `facts.Fit`).
"""
