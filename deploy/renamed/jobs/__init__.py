"""The name that slurmjobs had up to 0.1; this package goes with the next release."""
