"""One SlurmJob and its Slurm job: the decision table, its rules, and the actions they may request.

`table` is the machine, `rules` its cells, `situation` its input and `actions` its output. `outcome` says
how a job ended, `report` computes the status, `status_events` decides which of its changes are worth an Event, and
`why` explains it to people. All of it is pure; `slurmjobs.reconcile` carries it out.
"""
