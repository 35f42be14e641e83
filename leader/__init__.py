"""The work of extender and controllers in one process, for sites that want it so.

Its leader watches the cluster once and reads Slurm once for both. Every replica answers
kube-scheduler. The programs' own modules do the work; here they are only put together.
"""
