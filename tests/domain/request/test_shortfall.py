"""What Slurm granted, compared with what a pod takes."""

from dataclasses import replace

import pytest

from bridge.domain.model.allocation import Component, TaskGrant
from bridge.domain.model.demand import Demand
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.request import fit
from tests.make import lives

GPUS = {"nvidia.com/gpu": "gpu:a100"}
WANTED = Demand(milli_cpu=7500, memory_bytes=1024 << 20, extended={"nvidia.com/gpu": 2})
POD = replace(lives.gated(), demand=WANTED)
ENOUGH = TaskGrant(cpus=8, memory_mib=1024, gres={"gpu": 2})


def job(given: TaskGrant | None) -> SlurmJob:
    return replace(lives.job(), task_grant=given)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(ENOUGH, id="as much as asked for"),
        pytest.param(replace(ENOUGH, cpus=64, memory_mib=None, gres={"gpu": 8}), id="a whole node"),
        pytest.param(None, id="it does not run yet"),
    ],
)
def test_nothing_is_missing(given: TaskGrant | None) -> None:
    assert not fit.shortfall(POD, job(given), 0, GPUS)


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        (replace(ENOUGH, cpus=1), "1 of the 8 CPUs"),
        (replace(ENOUGH, memory_mib=1023), "1023 of the 1024 MiB"),
        (replace(ENOUGH, gres={}), "0 of the 2 gpu"),
        (
            TaskGrant(cpus=0, memory_mib=1, gres={"gpu": 1}),
            "0 of the 8 CPUs, 1 of the 1024 MiB, 1 of the 2 gpu",
        ),
    ],
)
def test_what_is_missing_is_said(given: TaskGrant, missing: str) -> None:
    assert f"it has {missing} that the pod requests" == fit.shortfall(POD, job(given), 0, GPUS)


def test_each_slot_is_compared_with_its_own_component() -> None:
    small = Component(tasks=2, task_grant=replace(ENOUGH, cpus=1))
    het = replace(lives.job(), parts=(small, Component(tasks=1, task_grant=ENOUGH)))

    assert [True, True, False, False] == [
        bool(fit.shortfall(POD, het, slot, GPUS)) for slot in range(4)
    ]


def test_finer_cpus_are_compared_as_slurm_counts_them() -> None:
    granted = replace(ENOUGH, cpus=75)
    short = replace(ENOUGH, cpus=74)

    assert not fit.shortfall(POD, job(granted), 0, GPUS, 100)
    assert "it has 7400m of the 7500m CPUs that the pod requests" == fit.shortfall(
        POD, job(short), 0, GPUS, 100
    )
