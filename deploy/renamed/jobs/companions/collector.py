"""`python -m jobs.companions.collector`: `slurmjobs.companions.collector` now."""

import runpy

runpy.run_module("slurmjobs.companions.collector", run_name="__main__", alter_sys=True)
