"""A Slurm for the tests of your programs: in this process, over real HTTP, without Slurm."""

from slurmclient.fake.requests import DOWN, LATE, LOST_REPLY, LOST_REQUEST, Fault
from slurmclient.fake.server import FakeSlurm

__all__ = ["DOWN", "LATE", "LOST_REPLY", "LOST_REQUEST", "FakeSlurm", "Fault"]
