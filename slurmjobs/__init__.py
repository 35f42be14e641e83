"""SlurmJob: batch jobs as Kubernetes objects.

`script` reads a batch script as sbatch(1) does, and `request` turns it into the job that slurmrestd
gets; both are pure and use nothing of the bridge but its faults and hostlists. `objects` is the
Kubernetes resource, `identity` decides whose job it becomes, and `admission` reviews new objects.
"""
