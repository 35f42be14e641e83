"""SlurmJob: batch jobs as Kubernetes objects.

`script` reads a batch script as sbatch(1) reads it, `request` turns what was read into the job that
slurmrestd gets; both are pure and know of the bridge only its faults and hostlists. `objects` is the
Kubernetes resource, `identity` says whose job it becomes, and `admission` reviews new objects.
"""
