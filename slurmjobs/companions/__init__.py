"""Companions: pods that print a SlurmJob's output for `kubectl logs`, and pods that copy its results to claims.

`due` decides what to do about the log companion, `collecting` about collectors; `pod` writes the manifests, `volume` finds
the job's files on the volume. `follower` and `collector` are the programs that the pods run as the job's user: one file each,
using only the standard library. `slurmjobs.reconcile.companions` carries out the decisions.
"""
