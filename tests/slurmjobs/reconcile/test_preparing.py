"""A script on which we fail ourselves is told to the SlurmJob, and one that takes long stops nobody else's."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import cast

import pytest
from structlog.testing import capture_logs

from bridge.domain.request.rules import Policy
from slurmjobs.reconcile.dependencies import SlurmDependencies
from slurmjobs.reconcile.preparing import PreparationFailure, Preparer
from slurmruntime.kube.client import KubeClient
from slurmruntime.values import names
from tests.slurmjobs.lifecycle.situations import NOW, slurm_job


async def _labels(_namespace: str) -> Mapping[str, str]:
    return {names.ENABLED_LABEL: "true"}


async def _nobody() -> frozenset[str]:
    return frozenset()


def _bug() -> Policy:
    raise ValueError("Exceeds the limit (4300 digits)")


def preparing(policy: Callable[[], Policy]) -> Preparer:
    return Preparer(
        cast("KubeClient", None),
        policy=policy,
        labels=_labels,
        slurm_user=_nobody,
        now=lambda: NOW,
        resolve=lambda _job: SlurmDependencies(),
        has_collectors=False,
    )


async def test_a_bug_is_a_refusal_that_the_slurm_job_is_told() -> None:
    preparer = preparing(_bug)
    with capture_logs() as log, pytest.raises(PreparationFailure) as found:
        await preparer.prepare(slurm_job())

    assert "PreparationFailed" == found.value.reason
    assert "ValueError: Exceeds the limit (4300 digits)" in found.value.text
    assert not found.value.is_final
    assert ["slurm_job.not_prepared"] == [each["event"] for each in log]


async def test_others_have_their_turn_while_a_script_is_read() -> None:
    others_had_it = threading.Event()
    waited: list[bool] = []

    def policy() -> Policy:
        waited.append(others_had_it.wait(20))
        return _bug()

    asyncio.get_running_loop().call_later(0.01, others_had_it.set)
    with pytest.raises(PreparationFailure):
        await preparing(policy).prepare(slurm_job())

    assert [True] == waited


async def test_scripts_are_read_one_at_a_time() -> None:
    at_once: list[int] = []
    lock = threading.Lock()

    def policy() -> Policy:
        at_once.append(0 if lock.acquire(blocking=False) else 1)
        threading.Event().wait(0.02)  # as long as a script may take
        if not at_once[-1]:
            lock.release()
        return _bug()

    preparer = preparing(policy)
    results = await asyncio.gather(
        *(preparer.prepare(slurm_job()) for _ in range(8)), return_exceptions=True
    )

    assert all(isinstance(result, PreparationFailure) for result in results)
    assert [0] * 8 == at_once
