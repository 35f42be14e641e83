"""Reads Slurm on schedules, politely, and keeps the latest readings.

`collector` runs the schedules, `sources` and `jobs` read, `efficiency` looks at ended jobs, `latest`
keeps the readings and says which are fresh, `pace` decides how often to ask, `journal` counts requests.
"""
