"""See to the pods that serve SlurmJobs: gather, decide as `slurmjobs.companions` does, act.

`pods` has the pods as the API server has them, `logs` makes those that print a job's output, `collectors` those that copy its results.
"""
