"""Read a batch script as sbatch(1) of Slurm 26.05 does: its header and the options in it.

`directives` finds the directives, `words` splits them, `getopt` recognises options, `options` is the table of all of
sbatch's options, `values` reads their values, `foreign` translates `#PBS` and `#BSUB`, `body` checks the
script as a whole, and `read` puts them together.
"""
