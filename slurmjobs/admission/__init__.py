"""Review SlurmJobs at CREATE: record who creates them, and refuse what cannot become a job.

`review` decides; `paths` says where in the object a fault of its script is. The webhook serves it.
"""
