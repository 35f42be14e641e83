"""One SlurmJob and its Slurm job: the decision table, its rules, and the actions they may request.

`table` is the machine, `rules` its cells, `situation` its input and `actions` its output; `outcome` says
how a job ended, `report` what a status says, `news` which changes of it are worth an Event, `why` explains
one to people. All of it is pure; `slurmjobs.reconcile` carries it out.
"""
