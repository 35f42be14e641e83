"""What a Slurm user does to an own placeholder to make it unreadable concerns nobody else's."""

import time

import pytest

from bridge.domain.model import identities
from bridge.slurm.discovery import Discovery
from tests.make.slurm import Job, Slurm
from tests.make.trouble import Trouble
from tests.slurm.placeholders import CLUSTER, identity

MINE, THEIRS = identity("mine"), identity("theirs")
NODES = ",".join(["node-[0-99]"] * 1001)
"""As long as slurmctld lets it be; each name is one of a node that exists."""


@pytest.mark.attack(
    "have Slurm's list of one's own waiting placeholder stand for more nodes than are read (`scontrol update ExcNodeList=`), so that it is unknown what else is missing, and nothing is decided",
    "whose placeholder it is stands apart from what it excludes: only its own workload waits",
)
async def test_an_own_job_that_cannot_be_read_hides_no_other() -> None:
    slurm = Slurm(
        Trouble(),
        [
            Job(id=1, comment=identities.encode(THEIRS), state="RUNNING", nodes="node-1"),
            Job(id=2, comment=identities.encode(MINE), excluded=[NODES]),
        ],
    )
    told: dict[int, str] = {}
    discovery = Discovery(
        slurm,  # type: ignore[arg-type]  # all that is called
        CLUSTER,
        clock=time.monotonic,
        on_unreadable=told.__setitem__,
    )

    for _ in range(2):
        snapshot = await discovery.refresh(complete=True)

        assert "more than 100000 names" in told[2]
        assert len(told[2]) < 200
        assert {MINE.key} == snapshot.unsure
        assert snapshot.is_whole
        assert [1] == [job.id for job in snapshot.by_key[THEIRS.key]]
