"""HTTP exchanges with slurmrestd: connections, TLS, tokens, fail-over."""
