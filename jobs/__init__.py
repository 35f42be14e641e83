"""SlurmJob: batch jobs as Kubernetes objects. What is here so far submits nothing.

`script` reads a batch script as sbatch(1) reads it, `request` turns what was read into the job that
slurmrestd gets; both are pure and know of the bridge only its faults and hostlists. `dry_run` is the
command that shows such a job.
"""
