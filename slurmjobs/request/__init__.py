"""Turn the options of a script into the job that slurmrestd gets and the environment that sbatch would set.

`conflicts` finds options that exclude each other, `settled` derives what sbatch derives, `description` and
`environment` write the two parts of the job, and `build` puts them together.
"""
