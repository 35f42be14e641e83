"""A Slurm for the tests of your programs: see `slurmclient.fake.server`."""

from slurmclient.fake.server import DOWN, LATE, LOST_REPLY, LOST_REQUEST, FakeSlurm, Fault

__all__ = ["DOWN", "LATE", "LOST_REPLY", "LOST_REQUEST", "FakeSlurm", "Fault"]
