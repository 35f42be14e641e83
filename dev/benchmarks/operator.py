"""`python -m benchmarks.operator`: a NodeSet of a thousand workers on as many KWOK nodes, beside a StatefulSet of the same pods.

A Slurm in this process plays the workers' nodes: one registers when its pod is ready. Then nothing changes for a while, and in
the end another operator begins, which has to find that there is nothing to write. Ends with 1 if a goal is missed.
"""

import asyncio
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import httpx
import msgspec
import typer
import uvloop
import yaml
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from benchmarks import figures
from benchmarks.figures import Figure
from benchmarks.meter import cpu_s, peak_memory_mib
from sandbox import ports
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmclient.fake import FakeSlurm
from slurmoperator.nodesets.worker_pods import WORKER_PODS, WorkerPodObject
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.definitions import definitions
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.rendering.node_sets.worker import worker_pod
from slurmoperator.rendering.site import ControlSite, SlurmImages
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.watch import Reflector
from slurmruntime.values.oddities import UNHEARD

_NAMESPACE: Final = "slurm"
_API: Final = f"/apis/slinky.slurm.net/v1beta1/namespaces/{_NAMESPACE}"
_PLAIN: Final = "plain"
"""The namespace of the StatefulSet: its pods are no workers, and may share nodes with them."""
_SETS: Final = f"/apis/apps/v1/namespaces/{_PLAIN}/statefulsets"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_IMAGE: Final = "example.test/{daemon}"
_PATIENCE_S: Final = 240.0
_POLL_S: Final = 0.25
_SETTLES_S: Final = 15.0
_MOST_MORE_S: Final = 30.0
_LOOKS: Final = "looks"
_WRITES: Final = (".create", ".patch", ".delete", ".update", "POST", "PATCH", "PUT", "DELETE")


class WorkersBench:
    """One API server, and operators that come and go."""

    def __init__(self, sandbox: Sandbox, kube: KubeClient, slurm: FakeSlurm, folder: Path) -> None:
        self._sandbox = sandbox
        self._kube = kube
        self._slurm = slurm
        self._folder = folder
        self._pods: Cache[WorkerPodObject] = Cache(WORKER_PODS, UNHEARD)
        self._pods.subscribe(self._changed)

    def _changed(self, _old: WorkerPodObject | None, new: WorkerPodObject | None) -> None:
        if new is not None and new.metadata.namespace == _NAMESPACE and new.ready_since is not None:
            self._slurm.register(new.slurm_node)

    async def run(self, count: int, rest_s: float) -> list[Figure]:
        """Measure everything."""
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(Reflector(self._kube, self._pods).run(stop))
            try:
                return await self._figures(count, rest_s)
            finally:
                stop.set()

    async def _figures(self, count: int, rest_s: float) -> list[Figure]:
        stateful_s = await self._stateful_set(count)
        typer.echo(f"the StatefulSet took {stateful_s:.1f} s")
        await self._kube.request("POST", f"{_API}/controllers", body=_controller())
        with self._operator() as first:
            await self._ready(first)
            began_s, before_s = time.monotonic(), cpu_s(first.pid)
            await self._kube.request("POST", f"{_API}/nodesets", body=_node_set(count))
            await _until(lambda: self._is_right(count))
            took_s, used_s = time.monotonic() - began_s, cpu_s(first.pid) - before_s
            typer.echo(f"the NodeSet took {took_s:.1f} s")
            calls = await self._calls(first)
            del calls[_LOOKS]
            await asyncio.sleep(_SETTLES_S)
            idle_from_s = cpu_s(first.pid)
            await asyncio.sleep(rest_s)
            idle_s = cpu_s(first.pid) - idle_from_s
            memory_mib = peak_memory_mib(first.pid)
        with self._operator() as second:
            await self._ready(second)
            await asyncio.sleep(_SETTLES_S)
            again = await self._calls(second)
        writes = {each: n for each, n in again.items() if _is_write(each)}
        return [
            Figure(what=f"StatefulSet of {count}, apply to status", found=stateful_s, unit="s"),
            Figure(
                what=f"NodeSet of {count}, apply to status",
                found=took_s,
                unit="s",
                most=stateful_s + _MOST_MORE_S,
            ),
            Figure(what="the operator's CPU for a worker", found=1000 * used_s / count, unit="ms"),
            Figure(
                what="requests to Kubernetes for a worker",
                found=sum(calls.values()) / count,
                unit="",
                words=_most(calls),
            ),
            Figure(
                what="CPU while nothing changes",
                found=100 * idle_s / rest_s,
                unit="% of a core",
                most=1,
            ),
            Figure(
                what="writes of another operator that begins",
                found=sum(writes.values()),
                unit="",
                most=0,
                words=_most(writes),
            ),
            Figure(what="the operator's memory, at most", found=memory_mib, unit="MiB"),
        ]

    async def _stateful_set(self, count: int) -> float:
        """Have a StatefulSet of the same pods, which stay; return the seconds until its status is right."""
        began_s = time.monotonic()
        await self._kube.request("POST", _SETS, body=_stateful(count))

        async def is_right() -> bool:
            status = (await _read(self._kube, f"{_SETS}/plain")).get("status", {})
            return bool(status.get("readyReplicas") == status.get("availableReplicas") == count)

        await _until(is_right)
        return time.monotonic() - began_s

    async def _is_right(self, count: int) -> bool:
        status = (await _read(self._kube, f"{_API}/nodesets/gpu")).get("status", {})
        told = {
            condition["type"]: condition["status"] for condition in status.get("conditions", ())
        }
        counts = {status.get(each) for each in ("replicas", "readyReplicas", "slurmIdle")}
        wanted = {"Accepted", "Ready", "Updated", "SlurmKnown"}
        return counts == {count} and all(told.get(each) == "True" for each in wanted)

    @contextmanager
    def _operator(self) -> Iterator["_Operator"]:
        dice = random.Random()  # noqa: S311  # a port, nothing secret
        listen = f"127.0.0.1:{ports.choose(['operator'], dice=dice)['operator']}"
        (self._folder / "token").write_text("any")
        settings = {
            "kubernetes": {"kubeconfig": str(self._sandbox.kubeconfig), "namespace": _NAMESPACE},
            "slurm": {
                "url": [self._slurm.url],
                "token_file": str(self._folder / "token"),
                "insecure": True,
            },
            "operator": {"controller": f"{_NAMESPACE}/site", "image": _IMAGE},
            "health": {"listen": listen},
        }
        file = self._folder / "operator.yaml"
        file.write_text(yaml.safe_dump(settings))
        command = (sys.executable, "-m", "slurmoperator", "--config", str(file))
        with (self._folder / "operator.log").open("ab") as log:
            process = subprocess.Popen(command, env=dict(os.environ), stdout=log, stderr=log)
        try:
            yield _Operator(process.pid, f"http://{listen}")
        finally:
            process.terminate()
            process.wait(60)

    async def _ready(self, operator: "_Operator") -> None:
        """Wait until it leads: then the Controller's Service is there, and it has read what it owns."""

        async def leads() -> bool:
            with contextlib.suppress(httpx.TransportError):
                return (await self._calls(operator))[_LOOKS] > 0
            return False

        await _until(leads)

    async def _calls(self, operator: "_Operator") -> Counter[str]:
        """Return how often each operation of Kubernetes was asked for, and how often it has looked."""
        await asyncio.sleep(1.1)  # it writes its metrics once a second
        async with httpx.AsyncClient(trust_env=False, timeout=10) as web:
            text = (await web.get(f"{operator.url}/metrics")).text
        counted: Counter[str] = Counter()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name == "slurm_bridge_kube_requests_total":
                    counted[sample.labels["operation"]] += int(sample.value)
                if sample.name == "slurm_bridge_reconciles_total":
                    counted[_LOOKS] += int(sample.value)
        return counted


class _Operator:
    def __init__(self, pid: int, url: str) -> None:
        self.pid, self.url = pid, url


def _is_write(operation: str) -> bool:
    return any(part in operation for part in _WRITES) and "lease" not in operation.lower()


def _most(calls: Mapping[str, int]) -> str:
    most = Counter(calls).most_common(8)
    return ", ".join(f"{n} {what}" for what, n in most)


async def _read(kube: KubeClient, path: str) -> Any:
    return json.loads(await kube.request("GET", path))


async def _until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            if await condition():
                return
            await asyncio.sleep(_POLL_S)


def _controller() -> dict[str, Any]:
    return {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "Controller",
        "metadata": {"name": "site", "namespace": _NAMESPACE},
        "spec": {
            "slurmKeyRef": {"name": "site-auth-slurm", "key": "slurm.key"},
            "jwtKeyRef": {"name": "site-auth-jwt", "key": "jwt.key"},
            "persistence": {"enabled": False},
        },
    }


def _node_set(count: int) -> dict[str, Any]:
    return {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "NodeSet",
        "metadata": {"name": "gpu", "namespace": _NAMESPACE},
        "spec": {"replicas": count, "controllerRef": {"name": "site"}},
    }


def _stateful(count: int) -> dict[str, Any]:
    """Return a StatefulSet of what a worker is made of."""
    labels = {"app.kubernetes.io/name": "slurmd", "app.kubernetes.io/instance": "plain"}
    daemons = ("slurmctld", "slurmd", "slurmdbd", "slurmrestd", "login")
    images = SlurmImages(**{daemon: _IMAGE.format(daemon=daemon) for daemon in daemons})
    node_set = msgspec.convert(_node_set(count), NodeSetObject)
    controller = msgspec.convert(_controller(), ControllerObject)
    pod = worker_pod(node_set, 0, controller, ControlSite(images=images))
    own = ("hostname", "subdomain")
    spec = {key: each for key, each in pod["spec"].items() if key not in own}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "plain"},
        "spec": {
            "replicas": count,
            "serviceName": "plain",
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


@asynccontextmanager
async def _opened(sandbox: Sandbox, folder: Path) -> AsyncIterator[WorkersBench]:
    async with (
        FakeSlurm(nodes=0) as slurm,
        KubeClient.open(
            str(sandbox.kubeconfig), request_timeout_s=60, user_agent="benchmarks"
        ) as kube,
    ):
        for definition in definitions():
            await kube.request("POST", _DEFINITIONS, body=definition)
        for each in (_NAMESPACE, _PLAIN):
            name = {"metadata": {"name": each}}
            await kube.request("POST", "/api/v1/namespaces", body=name)
        await asyncio.sleep(5)  # until they are served
        yield WorkersBench(sandbox, kube, slurm, folder)


async def _measured(sandbox: Sandbox, folder: Path, count: int, rest_s: float) -> list[Figure]:
    async with _opened(sandbox, folder) as bench:
        return await bench.run(count, rest_s)


def main(
    workers: Annotated[
        int, typer.Option(min=1, help="How many, each on a node of its own.")
    ] = 1000,
    rest_s: Annotated[float, typer.Option(min=1, help="How long to watch what rests.")] = 60,
) -> None:
    """Measure slurm-operator with many workers, on a sandbox of its own."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-bridge-workers-"))
    folder.chmod(0o755)
    options = Options(slurm=False, bridge=False, nodes=0, plain_nodes=workers)
    try:
        with Sandbox.up(folder, options) as sandbox:
            try:
                found = uvloop.run(_measured(sandbox, folder, workers, rest_s))
            except BaseException:
                log = folder / "operator.log"
                typer.echo(log.read_text()[-3000:] if log.exists() else "", err=True)
                raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    figures.show(found, Console(width=160))
    missed = any(each.most is not None and each.found > each.most for each in found)
    raise typer.Exit(1 if missed else 0)


if __name__ == "__main__":
    typer.run(main)
