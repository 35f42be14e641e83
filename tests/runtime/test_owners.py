"""What an owner asks of Slurm is looked through once for each of its versions, however many pods it has."""

from dataclasses import replace
from typing import Any

import pytest

from bridge.domain import names, overrides
from bridge.domain.objects import KubeObject
from bridge.domain.pods import Owner
from extender.owners import Owners
from tests import virtual_time
from tests.domain import lifecycle_builders as build
from tests.virtual_time import VirtualClock

MANY = {f"{names.REQUEST_PREFIX}min-node{number:04}": "x" for number in range(5000)}
JOB = KubeObject(
    api_version="batch/v1",
    kind="Job",
    uid="job-1",
    name="bomb",
    resource_version="1",
    annotations=MANY,
)
POD = replace(
    build.gated(), owner=Owner(api_version="batch/v1", kind="Job", name="bomb", uid="job-1")
)


class Objects:
    """Knows one Job."""

    def __init__(self) -> None:
        self.job = JOB

    async def get(self, *_: str) -> KubeObject:
        return self.job


def test_200_pods_of_one_job_cost_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    read = overrides.requests

    def counted(annotations: Any) -> dict[str, str]:
        looks.append(len(annotations))
        return read(annotations)

    monkeypatch.setattr(overrides, "requests", counted)

    async def main(clock: VirtualClock) -> None:
        objects: Any = Objects()
        owners = Owners(objects, clock)
        for _ in range(200):
            asked = await owners.requests(POD)
            _, faults = overrides.read(asked)
            assert ["expected at most 40 fields, found more"] == [f.message for f in faults]
        assert [5000] == looks

        objects.job = replace(JOB, resource_version="2", annotations={})
        await clock.sleep(60)
        assert {} == await owners.requests(POD)

    virtual_time.run(main)
