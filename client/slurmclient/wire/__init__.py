"""slurmrestd's JSON: decoding answers, encoding requests, splitting long lists. Nothing here does I/O."""
