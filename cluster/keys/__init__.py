"""The keys that Slurm's daemons share, in the Secrets that the objects name: made once, and never written again.

`naming` (pure) says which keys an object names and what is wrong with a Secret, `secrets` reads and creates. No key ever
stands in a log, an error or a condition: what is read of a Secret is the length of its parts.
"""
