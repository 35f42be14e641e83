"""A Slurm for the tests of your programs: in this process, over real HTTP, without Slurm.

`server` answers HTTP and applies faults, `cluster` has the nodes and jobs, `requests` the types that
both use.
"""

from slurmclient.fake.requests import DOWN, LATE, LOST_REPLY, LOST_REQUEST, Fault
from slurmclient.fake.server import FakeSlurm

__all__ = ["DOWN", "LATE", "LOST_REPLY", "LOST_REQUEST", "FakeSlurm", "Fault"]
