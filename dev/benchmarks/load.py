"""The load: create pods by the hundred, and record when each event happened to each of them.

It shares the machine with what it measures, so it is light: bodies are built once, one watch sees
everything, and only a handful of fields of each event is decoded.
"""

import asyncio
import contextlib
import enum
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Self

import msgspec

from benchmarks.results import Spread, spread
from sandbox.errors import SandboxError
from slurmruntime.kube import errors
from slurmruntime.kube.client import JSON, KubeClient
from slurmruntime.values import names

MERGE_PATCH = "application/merge-patch+json"
PLAYED = "sandbox.slurm-bridge.dev"
"""Prefix of the annotations that control how KWOK plays a pod's life."""

_AT_ONCE = 16
_WATCH_IDLE_S = 120.0
_SERVICE_ACCOUNT_TIMEOUT_S = 30.0
_POLL_S = 0.05


class Moment(enum.Enum):
    """Events in a pod's life; only the first occurrence counts."""

    SENT = "its CREATE left us"
    BOUND = "it has a node"
    TOLD = "it says why it waits"
    ENDED = "its containers have ended"
    RELEASED = "it has ended and our finalizer is gone"
    GONE = "it does not exist any more"


class _Metadata(msgspec.Struct):
    name: str
    version: str = msgspec.field(name="resourceVersion")
    finalizers: tuple[str, ...] = ()


class _Spec(msgspec.Struct):
    node: str = msgspec.field(name="nodeName", default="")


class _Condition(msgspec.Struct):
    type: str


class _Status(msgspec.Struct):
    phase: str = ""
    conditions: tuple[_Condition, ...] = ()


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec
    status: _Status


class _Event(msgspec.Struct):
    type: str
    object: _Pod


class _ListMetadata(msgspec.Struct):
    version: str = msgspec.field(name="resourceVersion")


class _List(msgspec.Struct):
    metadata: _ListMetadata


_event = msgspec.json.Decoder(_Event)


class Pods:
    """The pods of one namespace, created for the purpose and deleted with it."""

    def __init__(self, kube: KubeClient, namespace: str) -> None:
        self._kube = kube
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._moments: dict[Moment, dict[str, float]] = {moment: {} for moment in Moment}
        self._noted = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def watched(
        cls, kube: KubeClient, namespace: str, *, is_bridged: bool, are_left: bool = False
    ) -> AsyncIterator[Self]:
        """Create the namespace and watch it.

        At the end all pods must be gone within reasonable time, unless they are left to the end of the sandbox.
        """
        labels = {names.ENABLED_LABEL: "true"} if is_bridged else {}
        metadata = {"name": namespace, "labels": labels}
        await kube.request("POST", "/api/v1/namespaces", body={"metadata": metadata})
        await _await_service_account(kube, namespace)
        pods = cls(kube, namespace)
        listed = msgspec.json.decode(await kube.request("GET", pods._path), type=_List)
        try:
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(pods._watch(listed.metadata.version))
                yield pods
                if not are_left:
                    await pods.delete()
                watching.cancel()
        except ExceptionGroup as failures:  # the first has cancelled the others
            raise failures.exceptions[0] from None

    async def create(
        self,
        prefix: str,
        count: int,
        *,
        cpus: int = 1,
        memory_mib: int = 64,
        played: Mapping[str, str] | None = None,
        group: str = "",
    ) -> list[str]:
        """Create pods as fast as the API server accepts them; return their names.

        Args:
            prefix: the beginning of their names.
            count: the number of pods.
            cpus: CPUs per pod.
            memory_mib: memory per pod.
            played: how KWOK plays them: `run-seconds` and its siblings; without, they run until
                told otherwise.
            group: the gang they all belong to; "": each is alone.
        """
        named = [f"{prefix}-{number}" for number in range(count)]
        notes = {f"{PLAYED}/{key}": value for key, value in (played or {}).items()}
        labels = {names.POD_GROUP_LABEL: group} if group else {}
        notes |= {names.POD_GROUP_SIZE_ANNOTATION: str(count)} if group else {}
        await self.create_as(
            {name: _manifest(name, cpus, memory_mib, labels, notes) for name in named}
        )
        return named

    async def create_as(self, bodies: Mapping[str, object]) -> None:
        """Create pods from manifests of one's own, by name, as fast as they are accepted."""

        async def create(name: str) -> None:
            self._moments[Moment.SENT][name] = time.perf_counter()
            await self._kube.request("POST", self._path, body=bodies[name])

        await at_once(create, bodies)

    async def end(self, named: Collection[str]) -> None:
        """Let their containers end with exit code 0, as soon as KWOK notices."""
        body = msgspec.Raw(
            msgspec.json.encode({"metadata": {"annotations": {f"{PLAYED}/run-seconds": "0"}}})
        )

        async def end(name: str) -> None:
            await self._kube.request(
                "PATCH", f"{self._path}/{name}", body=body, content_type=MERGE_PATCH
            )

        await at_once(end, named)

    async def delete(self, deadline_s: float = 300) -> None:
        """Delete all of them, and wait until they are gone.

        One by one: a DELETE of a thousand at once may exceed the API server's request timeout.
        """

        async def delete(name: str) -> None:
            with contextlib.suppress(errors.NotFound):
                await self._kube.request(
                    "DELETE",
                    f"{self._path}/{name}",
                    body={"gracePeriodSeconds": 1},
                    content_type=JSON,
                )

        await at_once(delete, self._moments[Moment.SENT].keys() - self._moments[Moment.GONE].keys())
        await self.reached(Moment.GONE, self._moments[Moment.SENT], deadline_s)

    async def sample(self, name: str) -> bytes:
        """Return one pod as the API server sends it."""
        return await self._kube.request("GET", f"{self._path}/{name}")

    async def reached(
        self, moment: Moment, named: Collection[str], deadline_s: float
    ) -> Mapping[str, float]:
        """Wait until this has happened to all of them.

        Return when, by name, in seconds of `perf_counter`.

        Raises:
            SandboxError: it has not happened in time.
        """
        noted = self._moments[moment]
        try:
            async with asyncio.timeout(deadline_s):
                for name in named:
                    while name not in noted:
                        self._noted.clear()
                        await self._noted.wait()
        except TimeoutError:
            missing = sorted(name for name in named if name not in noted)
            raise SandboxError(
                f"{self._path}: {moment.value}: after {deadline_s:g} s not true of {len(missing)} of"
                f" {len(named)} pods: {', '.join(missing[:3])} …"
            ) from None
        return {name: noted[name] for name in named}

    def count(self, moment: Moment) -> int:
        """Return to how many it has happened."""
        return len(self._moments[moment])

    async def reached_by(self, moment: Moment, count: int, deadline_s: float) -> float:
        """Wait until this has happened to so many, whichever they are; return when it happened to the last of them.

        Raises:
            SandboxError: it has not happened in time.
        """
        noted = self._moments[moment]
        try:
            async with asyncio.timeout(deadline_s):
                while len(noted) < count:
                    self._noted.clear()
                    await self._noted.wait()
        except TimeoutError:
            raise SandboxError(
                f"{self._path}: {moment.value}: after {deadline_s:g} s true of {len(noted)} pods, not of {count}"
            ) from None
        return sorted(noted.values())[count - 1]

    def first(self, moment: Moment, named: Iterable[str]) -> float:
        """Return when it happened to the first of those it has happened to."""
        noted = self._moments[moment]
        return min(noted[name] for name in named if name in noted)

    def spread(self, since: Moment, until: Moment, named: Iterable[str]) -> Spread:
        """Return how long each of them took from one moment to another."""
        return spread([self._moments[until][n] - self._moments[since][n] for n in named])

    def spread_since(self, since: float, until: Moment, named: Iterable[str]) -> Spread:
        """Return how long each of them took from one moment common to all."""
        return spread([self._moments[until][n] - since for n in named])

    async def _watch(self, version: str) -> None:
        """Follow the pods.

        The API server ends a watch that is read too slowly, and one in which nothing happens times
        out: continue where it ended. Whoever waits for a pod has a deadline, and says what is missing.
        """
        while True:
            with contextlib.suppress(errors.Unavailable):
                async with self._kube.stream(
                    self._path, params={"resourceVersion": version}, idle_timeout_s=_WATCH_IDLE_S
                ) as lines:
                    async for line in lines:
                        event = _event.decode(line)
                        version = event.object.metadata.version
                        self._note(event, time.perf_counter())
            await asyncio.sleep(_POLL_S)

    def _note(self, event: _Event, now: float) -> None:
        pod = event.object
        is_new = False
        for moment, so in (
            (Moment.BOUND, bool(pod.spec.node)),
            (Moment.TOLD, any(c.type == names.ALLOCATED_CONDITION for c in pod.status.conditions)),
            (Moment.ENDED, _has_ended(pod)),
            (Moment.RELEASED, _has_ended(pod) and names.FINALIZER not in pod.metadata.finalizers),
            (Moment.GONE, event.type == "DELETED"),
        ):
            if so and pod.metadata.name not in self._moments[moment]:
                self._moments[moment][pod.metadata.name] = now
                is_new = True
        if is_new:
            self._noted.set()


def _has_ended(pod: _Pod) -> bool:
    return pod.status.phase in {"Succeeded", "Failed"}


def _manifest(
    name: str, cpus: int, memory_mib: int, labels: Mapping[str, str], notes: Mapping[str, str]
) -> msgspec.Raw:
    requests = {"cpu": str(cpus), "memory": f"{memory_mib}Mi"}
    container = {"name": "main", "image": "example.test/image", "resources": {"requests": requests}}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels, "annotations": notes},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    return msgspec.Raw(msgspec.json.encode(body))


async def at_once(do: Callable[[str], Awaitable[None]], named: Iterable[str]) -> None:
    """Call `do` for each name, some at a time, in order."""
    queue = iter(named)

    async def take() -> None:
        for name in queue:
            await do(name)

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(take())


async def _await_service_account(kube: KubeClient, namespace: str) -> None:
    """Wait for the service account, without which no pod is accepted.

    The controller manager creates it a moment after the namespace.
    """
    async with asyncio.timeout(_SERVICE_ACCOUNT_TIMEOUT_S):
        while True:
            try:
                await kube.request("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
            except errors.NotFound:
                await asyncio.sleep(_POLL_S)
            else:
                return
