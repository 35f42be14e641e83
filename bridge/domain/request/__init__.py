"""Turn a pod's request into the job to submit, or into a list of everything that is wrong with it.

`effective` is the entry point: everything that was read goes in; a placeholder or every fault comes
out. It calls `overrides`, which reads the annotations (`notation`: how values are written),
`attribution`, which decides whose job it is, `rules` and `permit`, which decide what the
administrator's policy allows, and `build`, which writes the placeholder for the nodes of
`candidates`.

`fit` and `selection` repeat Kubernetes' own rules, `revision` compares a waiting job with what
would be submitted now, `manifests` finds the pod templates in a manifest, and `expected` derives
the pods that follow from them.

This package knows pods, nodes, workloads and the placeholder. It does not know the lifecycle,
except for the type `decision.Fit` and what `restoration` takes from it.
"""
