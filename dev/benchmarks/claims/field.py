"""The sandbox in which claims are measured: Slurm's nodes and plain ones, all with devices."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from benchmarks import meter
from benchmarks.claims.figures import Flood, served_writes
from benchmarks.load import Moment, Pods
from benchmarks.meter import Meter, Reading
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from slurmruntime.kube.client import KubeClient

DRIVER = "gpu.example.com"
DEVICES = 4
"""Of each node."""
_API = "/apis/resource.k8s.io/v1"
_TEMPLATE = "one"
_SETTLE_S = 2.0
"""Writes that follow the binding are over by then."""
_PATIENCE_S = 300.0
_POLL_S = 0.2


class Field:
    """The sandbox while it is measured."""

    def __init__(self, sandbox: Sandbox, kube: KubeClient) -> None:
        self._sandbox = sandbox
        self._kube = kube
        self._meter = Meter(sandbox)

    async def offer_devices(self, nodes: int) -> None:
        """Publish devices for each node of either kind, and wait until Slurm has those of its own."""
        selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
        body: Any = {"metadata": {"name": DRIVER}, "spec": {"selectors": [selector]}}
        await self._kube.request("POST", f"{_API}/deviceclasses", body=body)
        devices = [{"name": f"gpu-{index}"} for index in range(DEVICES)]
        for node in (f"{kind}-{number}" for kind in ("node", "plain") for number in range(nodes)):
            pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
            body = {"metadata": {"name": f"slice-{node}"}, "spec": spec}
            await self._kube.request("POST", f"{_API}/resourceslices", body=body)
        await _until(lambda: self._have_devices(nodes), "Slurm does not know all devices")

    async def singles(self, count: int, *, is_bridged: bool) -> dict[bool, list[float]]:
        """Return CREATE to bound of pods that come one after another, in turns: by whether they have claims."""
        found: dict[bool, list[float]] = {False: [], True: []}
        namespace = f"singles-{'bridged' if is_bridged else 'plain'}"
        async with self._entered(namespace, is_bridged=is_bridged) as pods:
            for number in range(2 * count):
                name, claims = f"single-{number}", number % 4 in {1, 2}
                await pods.create_as({name: manifest(name, claims=claims)})
                await pods.reached(Moment.BOUND, [name], _PATIENCE_S)
                found[claims].append(pods.spread(Moment.SENT, Moment.BOUND, [name]).p50_s)
                await asyncio.sleep(1 + number / (2 * count))  # at any moment of Slurm's second
        return found

    async def flood(self, namespace: str, count: int, *, claims: bool, is_bridged: bool) -> Flood:
        """Create so many pods at once in a namespace of their own, and take everything away again."""
        async with self._entered(namespace, is_bridged=is_bridged) as pods:
            bodies = {f"pod-{n}": manifest(f"pod-{n}", claims=claims) for n in range(count)}
            before, served = await self._read()
            await pods.create_as(bodies)
            bound = await pods.reached(Moment.BOUND, bodies, _PATIENCE_S)
            await asyncio.sleep(_SETTLE_S)
            after, now_served = await self._read()
            used = meter.between(before, after)
            return Flood(
                pods=count,
                wall_s=max(bound.values()) - pods.first(Moment.SENT, bodies),
                p50_s=pods.spread(Moment.SENT, Moment.BOUND, bodies).p50_s,
                ours=used.calls,
                everyones=now_served - served,
                cpu_s=used.cpu_s,
            )

    @asynccontextmanager
    async def _entered(self, namespace: str, *, is_bridged: bool) -> AsyncIterator[Pods]:
        """Enter a namespace whose pods may claim a device; in the end, all devices are back."""
        async with Pods.watched(self._kube, namespace, is_bridged=is_bridged) as pods:
            exactly = {"deviceClassName": DRIVER, "count": 1}
            spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
            body = {"metadata": {"name": _TEMPLATE}, "spec": {"spec": spec}}
            path = f"{_API}/namespaces/{namespace}/resourceclaimtemplates"
            await self._kube.request("POST", path, body=body)
            yield pods
        await _until(lambda: self._has_no_claims(namespace), f"{namespace} keeps its claims")
        await asyncio.sleep(_SETTLE_S)

    async def _has_no_claims(self, namespace: str) -> bool:
        body = await self._kube.request("GET", f"{_API}/namespaces/{namespace}/resourceclaims")
        return not msgspec.json.decode(body)["items"]

    async def _have_devices(self, nodes: int) -> bool:
        shown = await asyncio.to_thread(self._sandbox.run, "scontrol", "show", "nodes", "-o")
        return shown.count(f"Gres=gpu:example:{DEVICES}") == nodes

    async def _read(self) -> tuple[Reading, Counter[str]]:
        reading = await asyncio.to_thread(self._meter.read)
        return reading, served_writes((await self._kube.request("GET", "/metrics")).decode())


async def _until(is_so: Callable[[], Awaitable[bool]], complaint: str) -> None:
    """Wait until it is so.

    Raises:
        SandboxError: it is not in time.
    """
    ends_s = time.monotonic() + _PATIENCE_S
    while not await is_so():
        if time.monotonic() > ends_s:
            raise SandboxError(f"{complaint} after {_PATIENCE_S:g} s")
        await asyncio.sleep(_POLL_S)


def manifest(name: str, *, claims: bool) -> dict[str, Any]:
    """Return a pod; all of them are alike but for the claim."""
    resources: dict[str, Any] = {"requests": {"cpu": "1", "memory": "64Mi"}}
    container = {"name": "main", "image": "example.test/image", "resources": resources}
    spec: dict[str, Any] = {"restartPolicy": "Never", "containers": [container]}
    if claims:
        resources["claims"] = [{"name": "gpu"}]
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": _TEMPLATE}]
    return {"metadata": {"name": name}, "spec": spec}
