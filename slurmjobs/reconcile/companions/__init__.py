"""The controllers of companion pods: gather facts, decide by `slurmjobs.companions`, act.

`pods` decodes and watches the pods, `logs` manages those that print a job's output, `collectors` those that copy its results.
"""
