"""`python -m jobs.companions.follower`: `slurmjobs.companions.follower` now."""

import runpy

runpy.run_module("slurmjobs.companions.follower", run_name="__main__", alter_sys=True)
