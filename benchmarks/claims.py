"""`python -m benchmarks.claims`: what a resource claim adds to a pod's way to its node.

KWOK nodes that all have devices. Pods come one by one to an idle cluster, then many at once; with a claim each and
without, in turns, so that both ways meet the same machine. Writes are counted by our services and by the API server.
"""

import asyncio
import os
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
import uvloop
from prometheus_client.parser import text_string_to_metric_families
from rich.table import Table

from benchmarks import report
from benchmarks.goals import Goal
from benchmarks.load import Moment, Pods
from benchmarks.meter import Meter
from bridge.kube.client import KubeClient
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from sandbox.options import Options

DRIVER = "gpu.example.com"
_API = "/apis/resource.k8s.io/v1"
_TEMPLATE = "one"
_DEVICES = 4
"""Of each node."""
_NODE_CPUS = 8
_WARM_UP_PODS = 20
_MOST_WRITES, _MOST_MS, _MOST_TIMES = 2, 20, 1.3
_SETTLE_S = 2.0
"""Writes that follow the binding are over by then."""
_PATIENCE_S = 300.0
_REQUEST_TIMEOUT_S = 60.0
_POLL_S = 0.2
_ASKS_KUBERNETES = " → Kubernetes "
_WRITES = ("POST ", "PUT ", "PATCH ", "DELETE ")
_OF_NO_POD = ("leases", "events", "POST pods")
"""Leases are written by the clock, as are the pods by which the controllers test the webhook (a dry run); Events tell of waiting."""
_COUNTER = "apiserver_request_total"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flood:
    """Pods that came at once."""

    pods: int
    wall_s: float
    """From the first CREATE until all were bound."""
    p50_s: float
    """CREATE to bound of one of them."""
    ours: Mapping[str, int]
    """Writes of our services, by operation."""
    everyones: Mapping[str, int]
    """Writes that the API server served, by operation; the CREATEs of the pods are among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """What was measured of pods that have a claim, or of those that have none."""

    single_s: Sequence[float]
    """CREATE to bound of pods that came one by one."""
    floods: Sequence[Flood]

    @property
    def single_p50_s(self) -> float:
        """Return the median of single pods."""
        return statistics.median(self.single_s)

    @property
    def wall_s(self) -> float:
        """Return the median time until all of a flood were bound."""
        return statistics.median(flood.wall_s for flood in self.floods)

    @property
    def p50_s(self) -> float:
        """Return the median of floods' medians."""
        return statistics.median(flood.p50_s for flood in self.floods)

    @property
    def writes(self) -> float:
        """Return our services' writes per pod."""
        return sum(self.per_pod("ours").values())

    def per_pod(self, whose: str) -> Mapping[str, float]:
        """Return the writes of our services (`ours`) or of all (`everyones`) per pod, by operation."""
        found: Counter[str] = Counter()
        for flood in self.floods:
            found.update(getattr(flood, whose))
        pods = sum(flood.pods for flood in self.floods)
        return {name: count / pods for name, count in sorted(found.items())}


def goals(without: Way, claiming: Way) -> Iterator[Goal]:
    """Yield what claims may add, and what they do."""
    yield Goal(
        name="API writes of ours per pod: more",
        found=claiming.writes - without.writes,
        limit=_MOST_WRITES,
        unit="",
    )
    yield Goal(
        name="CREATE to bound, single pods, median: more",
        found=1000 * (claiming.single_p50_s - without.single_p50_s),
        limit=_MOST_MS,
        unit="ms",
    )
    yield Goal(
        name="CREATE to all bound: times",
        found=claiming.wall_s / without.wall_s,
        limit=_MOST_TIMES,
        unit="",
    )


def main(
    *,
    pods: Annotated[int, typer.Option(help="Pods at once.", min=1)] = 200,
    nodes: Annotated[int, typer.Option(help="Nodes, with four devices each.", min=1)] = 100,
    rounds: Annotated[int, typer.Option(help="How often, each way.", min=1)] = 4,
    singles: Annotated[int, typer.Option(help="Pods one by one, each way.", min=1)] = 20,
) -> None:
    """Measure claims on a sandbox of their own; ends with 1 if a goal is missed."""
    if pods > _DEVICES * nodes:
        raise typer.BadParameter(
            f"{nodes} nodes have {_DEVICES * nodes} devices", param_hint="pods"
        )
    console = report.console()
    console.print(f"load before: {os.getloadavg()[0]:.1f}, processors: {os.cpu_count()}")
    folder = Path(tempfile.mkdtemp(prefix="slurm-bridge-claims-"))
    folder.chmod(0o755)  # the servers' accounts must be able to enter
    profile = f"""{{"device.driver == '{DRIVER}'": "gpu:example"}}"""
    options = Options(
        nodes=nodes,
        plain_nodes=0,
        node_cpus=_NODE_CPUS,
        node_gpus=0,
        hurried=False,
        settings=(f"controllers.device_profiles={profile}",),
    )
    try:
        with (
            Sandbox.up(folder, options) as sandbox,
            asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
        ):
            try:
                without, claiming = runner.run(_measure(sandbox, nodes, pods, rounds, singles))
            except SandboxError as error:
                raise SandboxError(f"{error}\n{sandbox.log_tails()}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found = list(goals(without, claiming))
    for table in (_times(without, claiming), _writes(without, claiming), _verdicts(found)):
        console.print(table)
        console.print()
    console.print(f"load after: {os.getloadavg()[0]:.1f}")
    raise typer.Exit(0 if all(goal.is_reached for goal in found) else 1)


async def _measure(
    sandbox: Sandbox, nodes: int, pods: int, rounds: int, singles: int
) -> tuple[Way, Way]:
    """Return what was found without claims, and with them."""
    async with KubeClient.open(
        str(sandbox.kubeconfig), request_timeout_s=_REQUEST_TIMEOUT_S, user_agent="benchmarks"
    ) as kube:
        field = _Field(sandbox, kube)
        await field.offer_devices(nodes)
        for claims in (False, True):
            await field.flood(f"warm-{claims}".lower(), min(pods, _WARM_UP_PODS), claims=claims)
        found = await field.singles(singles)
        floods: dict[bool, list[Flood]] = {False: [], True: []}
        for number in range(rounds):
            # Whoever comes first in one round comes last in the next.
            for claims in (False, True) if number % 2 == 0 else (True, False):
                name = f"flood-{number}-{'claims' if claims else 'plain'}"
                floods[claims].append(await field.flood(name, pods, claims=claims))
        without, claiming = (
            Way(single_s=found[claims], floods=floods[claims]) for claims in (False, True)
        )
        return without, claiming


class _Field:
    """The sandbox while it is measured."""

    def __init__(self, sandbox: Sandbox, kube: KubeClient) -> None:
        self._sandbox = sandbox
        self._kube = kube
        self._meter = Meter(sandbox)

    async def offer_devices(self, nodes: int) -> None:
        """Publish devices for each node, and wait until Slurm has them."""
        selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
        body: Any = {"metadata": {"name": DRIVER}, "spec": {"selectors": [selector]}}
        await self._kube.request("POST", f"{_API}/deviceclasses", body=body)
        devices = [{"name": f"gpu-{index}"} for index in range(_DEVICES)]
        for number in range(nodes):
            node = f"node-{number}"
            pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
            body = {"metadata": {"name": f"slice-{node}"}, "spec": spec}
            await self._kube.request("POST", f"{_API}/resourceslices", body=body)
        await _until(lambda: self._have_devices(nodes), "Slurm does not know all devices")

    async def singles(self, count: int) -> dict[bool, list[float]]:
        """Return CREATE to bound of pods that come one after another, in turns: by whether they have claims."""
        found: dict[bool, list[float]] = {False: [], True: []}
        async with self._bridged("singles") as pods:
            for number in range(2 * count):
                name, claims = f"single-{number}", number % 4 in {1, 2}
                await pods.create_as({name: manifest(name, claims=claims)})
                await pods.reached(Moment.BOUND, [name], _PATIENCE_S)
                found[claims].append(pods.spread(Moment.SENT, Moment.BOUND, [name]).p50_s)
                await asyncio.sleep(1 + number / (2 * count))  # at any moment of Slurm's second
        return found

    async def flood(self, namespace: str, count: int, *, claims: bool) -> Flood:
        """Create so many pods at once in a namespace of their own, and take everything away again."""
        async with self._bridged(namespace) as pods:
            bodies = {f"pod-{n}": manifest(f"pod-{n}", claims=claims) for n in range(count)}
            before, served = await self._read()
            await pods.create_as(bodies)
            bound = await pods.reached(Moment.BOUND, bodies, _PATIENCE_S)
            await asyncio.sleep(_SETTLE_S)
            after, now_served = await self._read()
            return Flood(
                pods=count,
                wall_s=max(bound.values()) - pods.first(Moment.SENT, bodies),
                p50_s=pods.spread(Moment.SENT, Moment.BOUND, bodies).p50_s,
                ours=our_writes(after - before),
                everyones=now_served - served,
            )

    @asynccontextmanager
    async def _bridged(self, namespace: str) -> AsyncIterator[Pods]:
        """Enter a namespace whose pods may claim a device; in the end, all devices are back."""
        async with Pods.watched(self._kube, namespace, is_bridged=True) as pods:
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
        return shown.count(f"Gres=gpu:example:{_DEVICES}") == nodes

    async def _read(self) -> tuple[Counter[str], Counter[str]]:
        ours = (await asyncio.to_thread(self._meter.read)).calls
        return ours, served_writes((await self._kube.request("GET", "/metrics")).decode())


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


def our_writes(calls: Mapping[str, int]) -> Counter[str]:
    """Return which calls of our services wrote something about pods to Kubernetes, by operation."""
    found: Counter[str] = Counter()
    for name, count in calls.items():
        _, is_kubernetes, operation = name.partition(_ASKS_KUBERNETES)
        if is_kubernetes and operation.startswith(_WRITES) and not operation.endswith(_OF_NO_POD):
            found[operation] += count
    return found


def served_writes(exposition: str) -> Counter[str]:
    """Return the writes about pods and claims that an API server has served, by operation, whoever sent them."""
    found: Counter[str] = Counter()
    lines = (line for line in exposition.splitlines() if line.startswith(_COUNTER))
    for family in text_string_to_metric_families("\n".join(lines)):
        for sample in family.samples:
            labels = sample.labels
            verb, resource = labels["verb"], labels["resource"]
            is_written = f"{verb} " in _WRITES and not labels.get("dry_run")
            if is_written and resource in {"pods", "resourceclaims"}:
                what = "/".join(filter(None, (resource, labels["subresource"])))
                found[f"{verb} {what}"] += int(sample.value)
    return found


def _times(without: Way, claiming: Way) -> Table:
    table = _table("seconds, medians", "without", "with a claim", "times")
    for name, before, now in (
        ("single pods: CREATE to bound", without.single_p50_s, claiming.single_p50_s),
        ("single pods: longest", max(without.single_s), max(claiming.single_s)),
        ("at once: first CREATE to all bound", without.wall_s, claiming.wall_s),
        ("at once: CREATE to bound", without.p50_s, claiming.p50_s),
    ):
        table.add_row(name, f"{before:.3f}", f"{now:.3f}", f"{now / before:.2f}")
    return table


def _writes(without: Way, claiming: Way) -> Table:
    table = _table("API writes per pod", "without", "with a claim")
    for whose, title in (("ours", "ours"), ("everyones", "all")):
        before, now = without.per_pod(whose), claiming.per_pod(whose)
        for name in sorted({*before, *now}):
            cells = (f"{found[name]:.2f}" if name in found else "" for found in (before, now))
            table.add_row(f"{title}: {name}", *cells)
    return table


def _verdicts(found: Sequence[Goal]) -> Table:
    table = _table("goals (2 cores)", "found", "goal", "")
    for goal in found:
        verdict = "[green]reached[/]" if goal.is_reached else "[red]missed[/]"
        limit = f"≤ {goal.limit:g} {goal.unit}".rstrip()
        table.add_row(goal.name, f"{goal.found:.2f} {goal.unit}".rstrip(), limit, verdict)
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(box=None, header_style="bold", title_justify="left")
    table.add_column(title, style="cyan", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right")
    return table


if __name__ == "__main__":
    typer.run(main)
