"""From the options of a script to the job that slurmrestd gets, and the environment that sbatch would set.

`conflicts` finds options that exclude each other, `settled` fills in what sbatch derives, `description` and
`environment` write both parts of the job, and `build` puts them together.
"""
