"""Describe the state of a Slurm in pods for people, from its objects: pure, and no decision depends on it.

`parts` says what belongs to one Slurm, `workers` describes the state of a worker, and `page` puts both on one page.
`answering` explains the state of one object, and `checks` are the doctor's questions about slurm-operator itself.
"""
