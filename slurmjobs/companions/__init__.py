"""Companions: pods that print a SlurmJob's output for `kubectl logs`, and pods that copy its results to claims.

`due` decides which printer is due, `collecting` which collector; `pod` writes both, `volume` finds the job's files on the volume.
`follower` and `collector` are the programs in them: a file each, of the standard library, which run as the job's user.
`slurmjobs.reconcile.companions` carries out what is decided.
"""
