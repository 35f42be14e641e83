"""The keys that Slurm's daemons share, in Secrets that are created once and never changed, and what those keys sign.

`naming` (pure) says which keys an object names and what is wrong with a Secret, `secrets` reads and creates Secrets, and
`host_keys` makes the keys of login pods. `rings`, `mounts` and `rotation` (pure) replace the daemons' key while they run: what
each step contains, which step a pod has, and when the next one is due. `certificates` decides which certificate slurmrestd
presents. `token_policy` (pure) says who may have a token for which Slurm user, and `tokens` (pure) when to sign one.
No key and no token ever appears in a log, an error or a condition.
"""
