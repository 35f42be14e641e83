"""Review SlurmJobs at CREATE: record who creates them, and refuse those that cannot become a job.

`review` decides; `paths` maps a fault of the script to its path in the object. The webhook serves it.
"""
