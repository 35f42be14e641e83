"""slurmctld's objects: jobs, nodes, partitions, reservations, licenses, shares."""
