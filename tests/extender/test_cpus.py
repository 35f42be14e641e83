"""What is told of a pod's CPUs never keeps the pod from its node."""

import asyncio

import pytest
from structlog.testing import capture_logs

from bridge.domain.lifecycle.actions import Assign
from bridge.slurm.allocated import cpus
from extender.cpus import of_pod
from slurmclient import errors
from slurmruntime.values.ids import JobId, KubeNode, SlurmNode
from tests.make.slurm import Slurm
from tests.make.slurm_nodes import Node
from tests.make.trouble import Trouble

ACTION = Assign(
    job_id=JobId(1), sluid=None, slurm_node=SlurmNode("s1"), kube_node=KubeNode("s1"), grant=""
)


def told(monkeypatch: pytest.MonkeyPatch, answer: frozenset[int] | errors.SlurmError) -> str:
    async def of_job(*_: object, **__: object) -> frozenset[int]:
        if isinstance(answer, errors.SlurmError):
            raise answer
        return answer

    monkeypatch.setattr(cpus, "of_job", of_job)
    slurm = Slurm(Trouble(), [], [Node(name="s1")])
    return asyncio.run(of_pod(slurm, ACTION, None))  # type: ignore[arg-type]


def test_the_cpus_of_an_external_node_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "0-1,4" == told(monkeypatch, frozenset({0, 1, 4}))


def test_an_answer_that_makes_no_sense_costs_the_pin_of_cores_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "" == told(monkeypatch, errors.Malformed("job.get", "the cores of a job: null"))


def test_an_answer_without_cpus_is_logged_as_it_is_final(monkeypatch: pytest.MonkeyPatch) -> None:
    with capture_logs() as logs:
        assert "" == told(monkeypatch, frozenset())

    assert ["pod.cpus_untold"] == [line["event"] for line in logs]


def test_a_job_that_cannot_be_read_now_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(errors.TargetNotFound):
        told(monkeypatch, errors.TargetNotFound("job.get", "no such job"))
