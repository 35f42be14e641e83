"""SlurmJob: batch jobs as Kubernetes objects.

What is here so far is pure: `script` reads a batch script as sbatch(1) reads it, `request` turns what
was read into the job that slurmrestd gets. Both know of the bridge only its faults and hostlists.
"""
