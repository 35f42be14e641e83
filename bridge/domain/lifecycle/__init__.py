"""One pod and its placeholder: the decision table, its rules, and the actions they may request.

`table` is the machine, `rules` its cells, `decision` its input and output, `actions` what may be
requested. It may import `workloads`, `observation` and `model`.
"""
