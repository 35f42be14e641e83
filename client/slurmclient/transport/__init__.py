"""HTTP exchanges with slurmrestd, without knowledge of what the requests mean.

`exchange` sends a request to one server, `failover` to the first of several that can be reached.
`connection` copes with slurmrestd's double answers, `tls` reloads certificates, `tokens` are the sources
of tokens, and `jwt` reads and mints them.
"""
