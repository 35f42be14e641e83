"""Companions: pods that make a SlurmJob's output readable with `kubectl logs`.

`due` decides which is due, `pod` writes it, `volume` finds the job's files on the volume. `follower` is the program in it: one file
of the standard library, which reads as the job's user. `jobs.controller.companions` carries out what is decided.
"""
