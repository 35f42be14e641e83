"""The keys that Slurm's daemons share, in the Secrets that the objects name: made once, and never changed; and what they sign.

`naming` (pure) says which keys an object names and what is wrong with a Secret, `secrets` reads and creates, and `host_keys` makes
those of login pods. `rings`, `mounts` and `rotation` (pure) bring the daemons from one key to the next while they run: what each step
says, which one a pod has, and when the next one is due. `certificates` says with what slurmrestd speaks TLS. `token_policy` (pure) says who may have a token for which Slurm user, and `tokens` (pure) when one is signed.
No key and no token ever stands in a log, an error or a condition.
"""
