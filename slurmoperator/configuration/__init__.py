"""Render Slurm's configuration from the objects of a cluster: one set of files, checked, with a digest.

`parameters` knows what each file may contain, `lines` reads a file as Slurm does, and `checking` finds its faults before a
daemon sees it. `inputs` holds what a configuration is made from; `slurm_conf`, `slurmdbd_conf`, `devices` and `profiles`
write the files, and `rendering` puts the set together. `partitions` keeps partitions that still have jobs, `refusals` finds
the line that a daemon refuses, and `changes` says what a change needs to take effect and whether it may. `differences` lists where the files
differ from those of SchedMD's slurm-operator, and why.
"""
