"""What the API server does for pods: allocations, which Go counts, and CPU time.

Allocations do not depend on the machine, and CPU time follows them.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

import msgspec

from benchmarks import meter
from benchmarks.load import MERGE_PATCH, Moment, Pods, at_once
from benchmarks.results import ApiWork, Idle, Spread
from benchmarks.scenarios import API_PODS, Stage
from sandbox.errors import SandboxError
from slurmruntime.kube.client import JSON, STRATEGIC_MERGE_PATCH, KubeClient

PLAIN, BRIDGED = "kube-scheduler alone", "through us"
CREATE, UPDATE, STATUS, DELETE = "CREATE", "an annotation", "a status", "DELETE"
LIFE = "whole life"
_SINGLES = 20
_REST_S = 2.0
_EFFECTIVE_S = 15.0
"""By then the API server has noticed that a policy is gone."""
_COUNTER = "go_memstats_mallocs_total "
_BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
_OURS = {"labelSelector": "app.kubernetes.io/name=slurm-bridge"}


async def lives(stage: Stage) -> dict[str, ApiWork]:
    """Measure whole lives, DELETE included, of pods in an ordinary and in a bridged namespace."""
    return {
        PLAIN: await _life(stage, "bench-api-plain", is_bridged=False),
        BRIDGED: await _life(stage, "bench-api-bridged", is_bridged=True),
    }


async def _life(stage: Stage, namespace: str, *, is_bridged: bool) -> ApiWork:
    ended = Moment.RELEASED if is_bridged else Moment.ENDED
    async with Pods.watched(stage.kube, namespace, is_bridged=is_bridged) as pods:

        async def live() -> None:
            named = await pods.create("live", API_PODS)
            await pods.reached(Moment.BOUND, named, stage.deadline_s)
            await asyncio.sleep(_REST_S)
            await pods.end(named)
            await pods.reached(ended, named, stage.deadline_s)
            await pods.delete()

        return await _worked(stage, live)


async def singles(stage: Stage) -> Spread:
    """Measure CREATE to bound of pods that come one after another to an idle cluster."""
    async with Pods.watched(stage.kube, "bench-single", is_bridged=True) as pods:
        named: list[str] = []
        for number in range(_SINGLES):
            one = await pods.create(f"single-{number}", 1)
            await pods.reached(Moment.BOUND, one, stage.deadline_s)
            named += one
            await asyncio.sleep(1 + number / _SINGLES)  # at any moment of Slurm's second
        return pods.spread(Moment.SENT, Moment.BOUND, named)


async def after_rest(stage: Stage, minutes: float) -> Idle:
    """Measure CREATE to bound of one pod, after so long without any pod."""
    async with Pods.watched(stage.kube, "bench-idle", is_bridged=True) as pods:
        await asyncio.sleep(60 * minutes)
        one = await pods.create("first", 1)
        await pods.reached(Moment.BOUND, one, stage.deadline_s)
        bound_s = pods.spread(Moment.SENT, Moment.BOUND, one).longest_s
    return Idle(minutes=minutes, bound_s=round(bound_s, 3))


async def strangers(stage: Stage) -> dict[str, tuple[ApiWork, ApiWork]]:
    """Measure the whole life, and each write, of a pod that is not ours: without our policies, and with them.

    A life is what a pod in an ordinary namespace goes through: kube-scheduler and a kubelet write, too.

    Afterwards the policies are in force again.
    """
    with_ours = await _life_and_writes(stage, "bench-tax-with")
    kube = stage.kube
    bindings = msgspec.json.decode(await kube.request("GET", _BINDINGS, params=_OURS))["items"]
    for binding in bindings:
        await kube.request("DELETE", f"{_BINDINGS}/{binding['metadata']['name']}")
    try:
        await asyncio.sleep(_EFFECTIVE_S)
        without = await _life_and_writes(stage, "bench-tax-without")
    finally:
        for binding in bindings:
            kept = {key: binding["metadata"][key] for key in ("name", "labels")}
            await kube.request("POST", _BINDINGS, body={**binding, "metadata": kept})
    return {title: (without[title], work) for title, work in with_ours.items()}


async def _life_and_writes(stage: Stage, namespace: str) -> dict[str, ApiWork]:
    life = await _life(stage, f"{namespace}-life", is_bridged=False)
    return {LIFE: life, **await _writes(stage, namespace)}


async def _writes(stage: Stage, namespace: str) -> dict[str, ApiWork]:
    kube, path = stage.kube, f"/api/v1/namespaces/{namespace}/pods"
    container = {"name": "main", "image": "example.test/image"}
    spec = {"schedulerName": "nobody", "containers": [container]}
    named = [f"strange-{number}" for number in range(API_PODS)]

    async def create(name: str) -> None:
        await kube.request("POST", path, body={"metadata": {"name": name}, "spec": spec})

    async def annotate(name: str) -> None:
        note = {"metadata": {"annotations": {"example.test/x": "0"}}}
        await kube.request("PATCH", f"{path}/{name}", body=note, content_type=MERGE_PATCH)

    async def report(name: str) -> None:
        status = {"status": {"phase": "Running", "podIP": "192.0.2.1"}}
        await kube.request(
            "PATCH", f"{path}/{name}/status", body=status, content_type=STRATEGIC_MERGE_PATCH
        )

    async def delete(name: str) -> None:
        await kube.request(
            "DELETE", f"{path}/{name}", body={"gracePeriodSeconds": 0}, content_type=JSON
        )

    writes = {CREATE: create, UPDATE: annotate, STATUS: report, DELETE: delete}
    async with Pods.watched(kube, namespace, is_bridged=False):
        return {
            title: await _worked(stage, lambda write=write: at_once(write, named))  # type: ignore[misc]  # mypy cannot infer the default
            for title, write in writes.items()
        }


async def _worked(stage: Stage, do: Callable[[], Awaitable[None]]) -> ApiWork:
    """Return what the API server did meanwhile, less what it does at rest and to be read."""
    at_rest = await _difference(stage, lambda: asyncio.sleep(_REST_S))
    found = await _difference(stage, do)
    idle = found.took_s - at_rest.took_s
    per_s = at_rest.allocations / at_rest.took_s
    return ApiWork(
        count=API_PODS,
        allocations=max(0.0, found.allocations - at_rest.allocations - idle * per_s),
        cpu_s=found.cpu_s,
        took_s=found.took_s,
    )


async def _difference(stage: Stage, do: Callable[[], Awaitable[None]]) -> ApiWork:
    pid = stage.sandbox.status()["apiserver"].pid
    if pid is None:
        raise SandboxError("the API server is down")
    before, cpu_s, began = await _allocated(stage.kube), meter.cpu_s(pid), time.perf_counter()
    await do()
    took_s, used_s = time.perf_counter() - began, meter.cpu_s(pid) - cpu_s
    after = await _allocated(stage.kube)
    return ApiWork(count=API_PODS, allocations=after - before, cpu_s=used_s, took_s=took_s)


async def _allocated(kube: KubeClient) -> float:
    lines = (await kube.request("GET", "/metrics")).decode().splitlines()
    found = next((line for line in lines if line.startswith(_COUNTER)), None)
    if found is None:
        raise SandboxError(f"the API server's metrics lack {_COUNTER.strip()}")
    return float(found.split()[1])
