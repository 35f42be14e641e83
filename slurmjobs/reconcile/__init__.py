"""The controller of SlurmJobs: watches them, decides by `slurmjobs.lifecycle`, and carries that out.

It lives in the controllers' process, whose leader reads Slurm for placeholders anyway: `batch_jobs`
shares those readings. `loop` gathers and decides, `preparing` makes the job that is submitted,
`archive` asks slurmdbd about jobs that slurmctld has forgotten, `actuator` writes, `telling` sends
Events, `assembly` puts them together.
"""
