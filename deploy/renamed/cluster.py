"""`python -m cluster`: the name that slurm-operator had up to 0.1; this file goes with the next release."""

import runpy
import sys

sys.stderr.write("cluster is called slurmoperator now: use `python -m slurmoperator`\n")
runpy.run_module("slurmoperator", run_name="__main__", alter_sys=True)
