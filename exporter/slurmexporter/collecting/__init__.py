"""Reads Slurm on schedules, politely, and keeps the latest readings.

`collector` runs the schedules, `sources` and `jobs` read, `efficiency` reads the records of ended jobs,
`latest` keeps the readings and knows which are fresh, `pace` decides how often to poll, `journal` counts
requests.
"""
