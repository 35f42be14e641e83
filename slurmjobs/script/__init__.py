"""Read a batch script as sbatch(1) of Slurm 26.05 reads it: its header, and the options in it.

`words` splits directives, `directives` finds them, `getopt` recognises options, `options` is the table of all of
sbatch's options, `values` says how each value is written, `foreign` translates `#PBS` and `#BSUB`,
`body` checks the script as a whole, and `read` puts them together.
"""
