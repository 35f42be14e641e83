"""One pod and its placeholder: the table of what is done, its rules, and what they may ask for.

`table` is the machine, `rules` its cells, `decision` what goes in and comes out, `actions` what may be asked for.
It may enter `workloads`, `observation` and `model`.
"""
