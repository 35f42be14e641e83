"""Say for people how a Slurm in pods stands, from its objects: pure, and no decision depends on it.

`parts` says what belongs to one Slurm, `workers` how a worker stands, `page` puts both on one page, `answering` answers why
one object is as it is, and `checks` are the doctor's questions about slurm-operator itself.
"""
