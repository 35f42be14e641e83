"""What is exported, as tables and pure functions: readings in, samples out.

`picture` holds the latest readings, `chapter` names what a part of a page is made of.
`own_*` are the names of this exporter; `slinky`, `native` and `vpenso` are the names that SchedMD's
slurm-exporter, slurmctld itself and vpenso's exporter use. `catalogue` lists all chapters by page.
"""
