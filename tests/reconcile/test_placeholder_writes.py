"""Who is told that Slurm has taken an end."""

import asyncio
from types import SimpleNamespace

import pytest

from bridge.domain.lifecycle.actions import Complete, Outcome
from bridge.domain.model.jobs import SlurmJob
from bridge.reconcile.placeholder_writes import PlaceholderWrites
from slurmclient.errors import Unavailable
from slurmruntime.values.ids import WorkloadKey
from tests.make import lives as build

JOB = build.job()
END = Complete(job_id=JOB.id, sluid=JOB.sluid, outcome=Outcome(exit_code=0))


class Slurm:
    """Takes ends, or is away."""

    def __init__(self, *, is_away: bool = False) -> None:
        self.is_away = is_away
        self.happened: list[str] = []

    async def complete(self, _job: SlurmJob, _how: Outcome) -> None:
        if self.is_away:
            raise Unavailable("job.complete", "no slurmctld")
        self.happened.append("taken")


def complete(slurm: Slurm) -> None:
    known = SimpleNamespace(job=lambda _id: JOB, wrote=lambda _key: None)
    unused = SimpleNamespace()
    writes = PlaceholderWrites(
        kube=unused,  # type: ignore[arg-type]  # not asked
        slurm=unused,  # type: ignore[arg-type]  # not asked
        completer=slurm,  # type: ignore[arg-type]  # all that is asked of it
        placeholders=known,  # type: ignore[arg-type]  # all that is asked of it
        on_completed=lambda: slurm.happened.append("told"),
    )
    asyncio.run(writes.of(WorkloadKey("pod-1")).act(build.bound(), END))


def test_who_listens_is_told_after_slurm_has_taken_the_end() -> None:
    slurm = Slurm()
    complete(slurm)
    assert ["taken", "told"] == slurm.happened


def test_nobody_is_told_of_an_end_that_slurm_has_not_taken() -> None:
    slurm = Slurm(is_away=True)
    with pytest.raises(Unavailable):
        complete(slurm)
    assert [] == slurm.happened
