"""slurmrestd's JSON: decoding answers, encoding requests, splitting long lists.

`values` reads optional numbers and timestamps, `reading` decodes answers into structs, `writing`
encodes request bodies, `splitting` cuts a list into objects while it arrives. Nothing here does I/O.
"""
