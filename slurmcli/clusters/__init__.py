"""What the commands say of a Slurm in pods: one page of it, why one of its objects is as it is, and the doctor's questions.

This room knows `cluster`; no other one of the bridge does, and the commands import it only when they are asked about such an
object.
"""
