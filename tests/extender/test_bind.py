"""Binding at kube-scheduler's word: not where the pod's job has ended meanwhile."""

import asyncio
from typing import Any

import httpx
import pytest

from bridge.domain.model.pods import Pod
from extender import app
from slurmruntime.process.clock import SystemClock
from slurmruntime.process.metrics import Metrics
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode, PodUid
from tests.make import placing as build

ASKED = {"PodName": "train", "PodNamespace": "team-a", "PodUID": "u-1", "Node": "k1"}


class Kube:
    """Takes every Binding."""

    def __init__(self) -> None:
        self.bound: list[str] = []

    async def request(self, method: str, path: str, **_: object) -> None:
        self.bound.append(f"{method} {path}")


@pytest.mark.parametrize("late", ["", "Slurm job 7 no longer has k1"])
def test_a_pod_is_bound_unless_its_job_has_ended_meanwhile(late: str) -> None:
    kube: Any = Kube()
    asked: list[tuple[Pod, KubeNode]] = []
    notes, labels = {names.NODE_ANNOTATION: "k1"}, {names.JOB_ID_LABEL: "7"}
    pod = build.pod(gates=(), annotations=notes, labels=labels)

    async def look(one: Pod, node: KubeNode) -> str:
        asked.append((one, node))
        return late

    async def bind() -> dict[str, Any]:
        extender = app.create(
            kube=kube,
            lookup={PodUid("u-1"): pod}.get,
            clock=SystemClock(),
            metrics=Metrics("extender"),
            last_check=look,
        )
        transport = httpx.ASGITransport(app=extender)
        async with httpx.AsyncClient(transport=transport, base_url="http://extender") as client:
            answer: dict[str, Any] = (await client.post("/v1/bind", json=ASKED)).json()
            return answer

    answer = asyncio.run(bind())

    assert [(pod, "k1")] == asked
    assert late == (answer.get("Error") or "")
    assert bool(late) != bool(kube.bound)
