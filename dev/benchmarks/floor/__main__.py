"""`python -m benchmarks.floor`: how fast, and for how much CPU of one client, pods can go through Slurm at all on this machine."""

import asyncio
import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import uvloop

from benchmarks.floor.client import FINALIZER, GATE
from benchmarks.load import Moment, Pods
from benchmarks.meter import cpu_s
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.kube.client import KubeClient

_WARM_UP = 20
_NODE_CPUS = 8
_DEADLINE_S = 300.0
_SETTLE_S = 2.0


def main(
    *,
    pods: Annotated[int, typer.Option(help="Pods of either kind.", min=1)] = 200,
    nodes: Annotated[int, typer.Option(help="Nodes of either kind.", min=1)] = 100,
) -> None:
    """Measure on a sandbox of its own, without slurm-bridge."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-bridge-bench-"))
    folder.chmod(0o755)  # the servers' accounts must be able to enter
    options = Options(
        bridge=False,
        nodes=nodes,
        plain_nodes=nodes,
        hurried=False,
        node_cpus=max(_NODE_CPUS, math.ceil((pods + _WARM_UP) / nodes)),
    )
    try:
        with (
            Sandbox.up(folder, options) as sandbox,
            asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
        ):
            runner.run(_measure(sandbox, pods))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _measure(sandbox: Sandbox, count: int) -> None:
    async with KubeClient.open(
        str(sandbox.kubeconfig), request_timeout_s=60, user_agent="benchmarks"
    ) as kube:
        async with Pods.watched(kube, "plain", is_bridged=False) as pods:
            warm = await pods.create("warm", _WARM_UP)
            await pods.reached(Moment.BOUND, warm, _DEADLINE_S)
            began = time.perf_counter()
            bound = await pods.reached(Moment.BOUND, await pods.create("plain", count), _DEADLINE_S)
            plain_s = max(bound.values()) - began
        async with Pods.watched(kube, "floor", is_bridged=False) as pods:
            with _client(sandbox) as pid:
                await _lived(pods, "warm", _WARM_UP)
                before = cpu_s(pid)
                floor_s = await _lived(pods, "floor", count)
                used_s = cpu_s(pid) - before
    typer.echo(f"{count} pods, CREATE to all bound: kube-scheduler alone {plain_s:.2f} s")
    typer.echo(f"through Slurm, by a client without logic: {floor_s:.2f} s")
    typer.echo(f"÷ kube-scheduler alone: {floor_s / plain_s:.2f}")
    typer.echo(f"the client's CPU per pod, whole life: {1000 * used_s / count:.2f} ms")


async def _lived(pods: Pods, prefix: str, count: int) -> float:
    """Have pods live and end; return the seconds from the first CREATE until all were bound."""
    bodies = {f"{prefix}-{n}": _manifest(f"{prefix}-{n}") for n in range(count)}
    began = time.perf_counter()
    await pods.create_as(bodies)
    bound = await pods.reached(Moment.BOUND, bodies, _DEADLINE_S)
    await asyncio.sleep(_SETTLE_S)
    await pods.end(bodies)
    await pods.reached(Moment.ENDED, bodies, _DEADLINE_S)
    await pods.delete()  # nothing is gone before it has been released
    return max(bound.values()) - began


@contextmanager
def _client(sandbox: Sandbox) -> Iterator[int]:
    """Run the client; yield its process id."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "benchmarks.floor.client", "floor"),
            *(str(sandbox.kubeconfig), sandbox.slurmrestd_url),
            *(str(sandbox.token_file), str(sandbox.slurmctld_port)),
        ]
    )
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def _manifest(name: str) -> msgspec.Raw:
    requests = {"cpu": "1", "memory": "64Mi"}
    container = {"name": "main", "image": "example.test/image", "resources": {"requests": requests}}
    spec = {
        "restartPolicy": "Never",
        "schedulerName": "nobody",
        "schedulingGates": [{"name": GATE}],
        "containers": [container],
    }
    metadata = {"name": name, "finalizers": [FINALIZER]}
    return msgspec.Raw(
        msgspec.json.encode({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    )


if __name__ == "__main__":
    typer.run(main)
