"""HTTP exchanges with slurmrestd, without knowledge of what the requests mean.

`exchange` sends a request to one server, `failover` to the first of several that can be reached.
`connection` copes with slurmrestd's double answers, `tls` reloads certificates, `tokens` says where
a token comes from and `jwt` what is in it.
"""
