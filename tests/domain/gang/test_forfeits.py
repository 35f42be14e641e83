"""From whom devices are taken back: who waits, and surely has no placeholder. The others that wait may soon be given some."""

from dataclasses import replace

import pytest

from bridge.domain.gang.decide import OpenCase, Plan
from bridge.domain.model.claims.values import PodClaim
from bridge.domain.model.pods import Pod
from bridge.domain.observation.view import View
from slurmruntime.values.ids import WorkloadKey
from tests.make import placing as make

POD = make.pod(resource_claims=(PodClaim(entry="gpu", claim="mine"),))
SURE = View(fresh=True, surely_none=True)


@pytest.mark.parametrize(
    ("pod", "view", "is_taken_back"),
    [
        (POD, SURE, True),
        (POD, replace(SURE, surely_none=False), False),  # a job that we have not seen may have it
        (POD, replace(SURE, fresh=False), False),  # its pin may just have been written
        (replace(POD, resource_claims=()), SURE, False),
        (replace(POD, gates=()), SURE, False),
        (replace(POD, deletion_at=make.CREATED), SURE, False),  # Kubernetes takes them back
    ],
)
def test_who_gives_its_devices_back(pod: Pod, view: View, *, is_taken_back: bool) -> None:
    look = OpenCase(pod=pod, view=view, since=make.CREATED, job=None)
    plan = Plan(key=WorkloadKey("u-1"), is_gang=False, faults=(), waiting=None, members=(look,))

    assert (pod in plan.forfeits) is is_taken_back
    may_wait = bool(pod.resource_claims and pod.gates and not pod.is_deleting)
    assert (pod in plan.expectant) is (may_wait and not is_taken_back)
