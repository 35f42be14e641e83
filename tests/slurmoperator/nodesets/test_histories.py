"""Random histories over the whole loop: whatever happens, no worker is deleted while it has a job, and all comes right."""

import asyncio
import os
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from typing_extensions import override

from slurmoperator.objects.labels import PROTECTED_LABEL
from slurmruntime.kube import errors
from tests.slurmoperator.nodesets.peers import (
    READY,
    Cluster,
    Operator,
    Workers,
    job,
    names_of,
    node_set,
)
from tests.virtual_time import VirtualClock, run

pytestmark = pytest.mark.slow

MOST = 4
STEPS = 60
HISTORIES = int(os.environ.get("SLURM_BRIDGE_WORLDS", "40"))
AT_ONCE = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": MOST}}
"""In the end: somebody may have more machines cordoned than may be away otherwise."""


class Watched(Cluster):
    """Notes every worker that is deleted while it has a job."""

    slurm: Workers
    lost: list[str]
    is_away = False

    @override
    async def request(self, method: str, path: str, **sent: Any) -> bytes:
        if self.is_away:
            raise errors.Unavailable(method, path, message="connection refused")
        return await super().request(method, path, **sent)

    @override
    def _write(self, method: str, path: str, body: Any, content_type: str) -> bytes:
        if method == "DELETE" and "/pods/" in path:
            node = self._find(method, path)["spec"]["hostname"]
            if busy := self.slurm._running_on(node):
                self.lost.append(f"{node} with job {busy[0].id}")
        return super()._write(method, path, body, content_type)


class History:
    """One history; the same seed gives the same."""

    def __init__(self, clock: VirtualClock, rng: Random) -> None:
        self.clock, self.rng = clock, rng
        self.operator = Operator(clock)
        self.slurm = self.operator.slurm
        self.api = Watched(clock, self.operator.trouble)
        self.operator.api, self.api.slurm, self.api.lost = self.api, self.slurm, []
        self.wanted = rng.randrange(MOST + 1)
        self.api.put(node_set(replicas=self.wanted))
        for number in range(MOST):
            meta = {
                "name": f"machine-gpu-{number}",
                "uid": f"m{number}",
                "creationTimestamp": "2026-01-01T00:00:00Z",
            }
            self.api.create({"kind": "Node", "metadata": meta, "spec": {}})
        self.next_job = 1
        self.versions = 0
        self.evicted = 0
        self.told: list[str] = []

    def happen(self) -> None:
        steps = {
            self.start_job: 10,
            self.end_job: 6,
            self.scale: 4,
            self.cordon: 3,
            self.evict: 4,
            self.update: 3,
            self.change_strategy: 1,
            self.kill: 1,
            self.lose_the_api: 1,
            self.lose_a_reply: 3,
            self.go_away: 1,
            self.come_back: 2,
            self.wait: 8,
        }
        (chosen,) = self.rng.choices(list(steps), list(steps.values()))
        self.told.append(f"{self.clock.monotonic():.0f} s: {chosen.__name__}")
        chosen()

    def wait(self) -> None:
        pass

    def scale(self) -> None:
        self.wanted = self.rng.randrange(MOST + 1)
        self.api.change("NodeSet", "gpu", spec={"replicas": self.wanted})

    def cordon(self) -> None:
        name = f"machine-gpu-{self.rng.randrange(MOST)}"
        was = self.api.of("Node")[name]["spec"].get("unschedulable", False)
        self.api.change("Node", name, spec={"unschedulable": not was})

    def evict(self) -> None:
        """Somebody evicts all that the budget does not refuse."""
        for name, pod in self.api.pods.items():
            is_protected = pod["metadata"]["labels"].get(PROTECTED_LABEL) == "true"
            if is_protected or name not in names_of(self.api.pods):
                continue
            if busy := self.slurm._running_on(pod["spec"]["hostname"]):
                self.api.lost.append(f"{name} could be evicted with job {busy[0].id}")
            self.evicted += 1
            meta = {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
            self.api.change("Pod", name, metadata=meta)

    def update(self) -> None:
        """Another template, which may not work, or an old one again."""
        self.versions += 1
        image = f"slurmd:{self.rng.randrange(self.versions + 1)}"
        self.api.unstartable = frozenset({image} if self.rng.random() < 0.3 else ())
        self.api.change("NodeSet", "gpu", spec={"slurmd": {"image": image}})

    def change_strategy(self) -> None:
        kind = self.rng.choice(["RollingUpdate", "OnDelete"])
        self.api.change("NodeSet", "gpu", spec={"updateStrategy": {"type": kind}})

    def kill(self) -> None:
        """A worker really dies, and its jobs with it."""
        there = names_of(self.api.pods)
        started = [name for name in there if "status" in self.api.pods[name]]
        if started:
            name = self.rng.choice(started)
            self.slurm.end_all_on(self.api.pods[name]["spec"]["hostname"])
            self.api.change("Pod", name, status={"phase": "Failed", "conditions": []})

    def lose_the_api(self) -> None:
        self.api.is_away = True

    def start_job(self) -> None:
        """On a worker that is ready, as slurmctld would."""
        free = [
            node.name
            for name, pod in self.api.pods.items()
            if pod.get("status", {}).get("conditions") == [READY]
            and name in names_of(self.api.pods)
            and (node := self.slurm.nodes.by_name[pod["spec"]["hostname"]]).takes_jobs
        ]
        if free:
            self.slurm.jobs[self.next_job] = job(self.next_job, self.rng.choice(free))
            self.next_job += 1

    def end_job(self) -> None:
        if self.slurm.jobs:
            del self.slurm.jobs[self.rng.choice(list(self.slurm.jobs))]

    def lose_a_reply(self) -> None:
        self.slurm.late_s = self.rng.choice([0.5, 3, 9])

    def go_away(self) -> None:
        self.slurm.is_away = True

    def come_back(self) -> None:
        self.slurm.is_away = self.api.is_away = False

    async def play(self) -> None:
        async with asyncio.TaskGroup() as group:
            leader = group.create_task(self.term())
            for _ in range(STEPS):
                await self.clock.sleep(self.rng.random() * 6)
                self.api.kubelet(self.slurm, start=self.rng.random() < 0.8)
                self.happen()
                if self.rng.random() < 0.1:  # the process is killed, and another one takes over
                    self.told.append("killed")
                    leader.cancel()
                    leader = group.create_task(self.term())
            leader.cancel()

    async def term(self) -> None:
        with suppress(asyncio.CancelledError):
            await self.operator.lead(for_s=10_000, kubelet=False)

    async def settle(self) -> None:
        """Nothing else goes wrong, and all jobs end."""
        self.slurm.is_away, self.slurm.late_s = False, 0.0
        self.api.is_away, self.api.unstartable = False, frozenset()
        self.slurm.jobs.clear()
        self.api.change("NodeSet", "gpu", spec={"updateStrategy": AT_ONCE})
        await self.operator.lead(for_s=300)


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_no_history_costs_a_job(seed: int) -> None:
    async def main(clock: VirtualClock) -> None:
        history = History(clock, Random(seed))  # noqa: S311  # histories, not secrets
        await history.play()
        assert not history.api.lost, (history.api.lost, history.told)
        await history.settle()
        api = history.api
        assert len(names_of(api.pods)) == len(api.pods) == history.wanted, history.told
        assert history.wanted == api.status("gpu").get("readyReplicas", 0), history.told
        assert history.wanted == api.status("gpu").get("updatedReplicas", 0), history.told
        for name, pod in api.pods.items():
            machine = api.of("Node")[pod["spec"]["nodeName"]]["spec"]
            reason = history.slurm.nodes.by_name[name].reason
            assert bool(reason) == machine.get("unschedulable", False), (reason, history.told)

    run(main)
