"""Slurm's configuration, made from the objects of a cluster, as one set of files that is checked and has a digest.

`parameters` knows what each file may say, `lines` reads a file as Slurm does, and `checking` finds its faults before a
daemon sees it. `inputs` is what a configuration is made from, `slurm_conf`, `slurmdbd_conf` and `devices` make the files,
and `rendering` puts the set together. `changes` says what a change takes; `differences` lists where the files differ from
those of SchedMD's slurm-operator, and why.
"""
