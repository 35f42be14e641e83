"""Commands for people: `slurm-bridge why`, `queue`, `nodes` …, also as `kubectl slurm …`.

They only read, except `take-over`.
"""
