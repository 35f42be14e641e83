"""The exported metrics, as tables and pure functions: readings in, samples out.

`picture` has the latest readings, `chapter` the type of a part of a page, `figures` what several families show.
`own_*` are the names of this exporter; `slinky`, `native` and `vpenso` are the names that SchedMD's
slurm-exporter, slurmctld itself and vpenso's exporter use. `catalogue` lists all chapters by page.
"""
