"""The controller of SlurmJobs: watches them, decides by `slurmjobs.lifecycle`, and carries out the decisions.

It runs in the controllers' process, whose leader reads Slurm for placeholders anyway: `batch_jobs`
shares those readings. `loop` gathers facts and decides, `preparing` builds the job to submit,
`archive` asks slurmdbd about jobs that slurmctld has forgotten, `actuator` acts, `telling` sends
Events, and `assembly` puts them together.
"""
