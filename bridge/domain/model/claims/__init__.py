"""Resource claims: what they ask Slurm for, and which devices they get once Slurm has chosen.

A device profile says which DeviceClass is which GRES. Slurm is the only allocator: a claim gets the
devices whose indexes Slurm gave the pod's job.
"""
