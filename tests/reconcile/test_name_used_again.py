"""A group that is created again under its name while the old one ends: two gangs with one key. In virtual time."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from typing_extensions import override

from bridge.domain.gang.decide import OpenCase
from bridge.domain.lifecycle.decision import Actor, Facts
from bridge.domain.model import grant, identities
from bridge.domain.model.grant import Grant
from bridge.domain.observation.view import Evidence
from slurmruntime.kube.meta import rfc3339
from slurmruntime.values import names
from slurmruntime.values.ids import WorkloadKey
from tests import virtual_time
from tests.make.apiserver import Manifest
from tests.make.manifests import in_ring, placed, pod, running
from tests.make.sides import KnowsAll
from tests.make.slurm import Job
from tests.make.trouble import Trouble
from tests.reconcile.leader import PACE, Leader, membership_of
from tests.virtual_time import EPOCH, VirtualClock


class Accounts(KnowsAll):
    """Asks slurmdbd, which has no end of any job: it has the start of the new gang's before we have read it."""

    @override
    def gather(self, case: OpenCase, *, key: WorkloadKey, now: datetime) -> Facts:
        found = super().gather(case, key=key, now=now)
        return replace(found, view=replace(case.view, evidence=Evidence.LOST))


def stopping(name: str, labels: dict[str, str] | None = None) -> Manifest:
    found = placed(name, in_ring(0))
    found["metadata"]["labels"] |= labels or {}
    found["metadata"] |= {
        "deletionTimestamp": rfc3339(EPOCH + timedelta(minutes=1)),
        "deletionGracePeriodSeconds": 60,
    }
    return found


def placed_by_another(name: str, another: Job) -> Manifest:
    identity = identities.decode(another.comment)
    assert identity is not None
    granted = Grant(name="ring", user="user", group="group", memory_mib_per_cpu=256, started_s=1)
    notes = {
        **in_ring(0),
        names.NODE_ANNOTATION: "k1",
        names.SLUID_ANNOTATION: another.sluid,
        names.GRANT_ANNOTATION: grant.encode(identity, granted),
    }
    return pod(name, {"nodeName": "k1"}, labels={names.JOB_ID_LABEL: str(another.id)}, notes=notes)


@pytest.mark.parametrize("after_s", [10 * PACE.idle_s + share for share in (0.1, 0.9, 1.9)])
def test_the_new_gangs_placeholder_is_not_lost_before_it_was_read(after_s: float) -> None:
    async def main(clock: VirtualClock) -> Leader:
        old = running(1, "old", ring=True)
        side = Accounts(Actor.CONTROLLERS, membership_of).side()
        leader = Leader(Actor.CONTROLLERS, [stopping("old")], [old], Trouble(), clock, side=side)

        async def made_again() -> None:
            await clock.sleep(after_s)
            new = leader.slurm.jobs[2] = running(2, "new", ring=True)
            leader.api.create(placed_by_another("new", new))
            leader.api.create(stopping("old", labels={"example.test/news": "some"}))

        async with asyncio.TaskGroup() as group:
            group.create_task(made_again())
            await leader.lead(for_s=after_s + 20)
        return leader

    leader = virtual_time.run(main)

    assert [] == leader.restored
    assert {"RUNNING"} == {job.state for job in leader.slurm.jobs.values()}
