"""`python -m sandbox`: the same as `slurm-bridge sandbox`."""

from sandbox.cli import app

app(prog_name="slurm-bridge sandbox")
