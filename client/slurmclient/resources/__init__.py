"""What slurmctld has: jobs, nodes, partitions, reservations, licenses, shares."""
