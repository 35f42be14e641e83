"""The rules of slurm-bridge, free of I/O: values in, values and a reason out.

Nothing here may import anything but the standard library's data modules; no clock, no randomness,
no logging. The terms: a *placeholder* is the Slurm job (an *external job*) that holds an allocation
for a *workload*, the pods that share it. An *allocation* is the set of nodes Slurm gave a
placeholder. To *assign* is to choose pod → node inside an allocation; to *bind* is to create the
Binding; to *evict* a pod, to *cancel* or *complete* a placeholder, to *adopt* one that was found,
to *release* our finalizer. An *orphan* is a placeholder without pods.
"""
