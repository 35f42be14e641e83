"""Runs extender and controllers in one process, for sites that prefer that.

Its leader watches the cluster once and reads Slurm once for both. Every replica answers
kube-scheduler. The modules of the two programs do the work; here they are only combined.
"""
