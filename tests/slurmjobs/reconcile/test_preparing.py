"""A script on which we fail ourselves is told to the SlurmJob, instead of failing again and again without a word."""

from collections.abc import Mapping
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


async def test_a_bug_is_a_refusal_that_the_slurm_job_is_told() -> None:
    preparer = Preparer(
        cast("KubeClient", None),
        policy=_bug,
        labels=_labels,
        slurm_user=_nobody,
        now=lambda: NOW,
        resolve=lambda _job: SlurmDependencies(),
        has_collectors=False,
    )
    with capture_logs() as log, pytest.raises(PreparationFailure) as found:
        await preparer.prepare(slurm_job())

    assert "PreparationFailed" == found.value.reason
    assert "ValueError: Exceeds the limit (4300 digits)" in found.value.text
    assert not found.value.is_final
    assert ["slurm_job.not_prepared"] == [each["event"] for each in log]
