"""An API server with the control plane's objects and server-side apply, and a leader that may die: in virtual time."""

import asyncio
import copy
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import Any

import msgspec
from typing_extensions import override

from slurmoperator.daemons.acting import KeySource
from slurmoperator.daemons.loop import ControlLoop
from slurmoperator.daemons.part import PARTS, WATCHED_WORKLOADS, ControlPeers, PartCaches
from slurmoperator.keys.token_policy import TokenPolicy
from slurmoperator.nodesets.conf_trials import ConfTrials
from slurmoperator.nodesets.nodeset import NODE_SETS
from slurmoperator.objects.parts import API_VERSION
from slurmoperator.rendering.site import NamespaceScope
from slurmoperator.rendering.ssh import HOST_KEY_FILES
from slurmruntime.kube.apply import writes
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.errors import Unavailable
from slurmruntime.kube.meta import rfc3339
from slurmruntime.process.clock import Clock
from slurmruntime.process.metrics import Metrics
from tests.make.apiserver import Manifest
from tests.make.applied import ApplyingServer
from tests.make.processes import process
from tests.make.trouble import Trouble
from tests.slurmoperator.examples import BY_NAME, manifest, path
from tests.slurmoperator.rendering.given import SITE

SETTLED_S = 200.0
"""Longer than anything takes: a minute between looks at what is settled, and back-offs."""


def secret(name: str, **data: bytes) -> Manifest:
    """A Secret of a user."""
    encoded = {key.replace("_", "."): msgspec.to_builtins(each) for key, each in data.items()}
    meta = {"name": name, "namespace": "slurm", "uid": f"uid-{name}"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": encoded}


_PLURALS = frozenset(each.plural for each in BY_NAME.values())
_LISTED = _PLURALS | {"controllerrevisions", "deployments", "statefulsets"}
PASSWORD = secret("mariadb-password", password=b"hunter2")


def part(kind: str, name: str = "site", /, **changes: Any) -> Manifest:
    """An object of the control plane as the API server has it."""
    made = manifest(kind, name, **changes)
    made["metadata"] |= {"uid": f"uid-{kind}-{name}", "generation": 1}
    return made


def controller(**changes: Any) -> Manifest:
    """A Controller that needs nothing else."""
    return part("Controller", accountingRef=..., prologScriptRefs=..., **changes)


class AppliedTo(ApplyingServer):
    """Creates and deletes what the control plane's loop makes, too."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.nudges: list[dict[str, str]] = []
        """The annotations that pods of slurmctld got."""

    slurmctlds: Mapping[str, str] = MappingProxyType({})
    """What the side-car of each pod of slurmctld has said, by the pod's name."""
    slurmdbd: tuple[str, bool] | None = None
    """The last words of what comes before slurmdbd, and whether that serves; None while it has no pod."""

    @override
    async def request(self, method: str, path: str, **sent: Any) -> bytes:
        if path.endswith("/log"):
            return self.slurmctlds[path.split("/")[-2]].encode()
        if "=slurmctld" in (sent.get("params") or {}).get("labelSelector", ""):
            return msgspec.json.encode(self._page(list(map(_slurmctld, self.slurmctlds))))
        if "=slurmdbd" in (sent.get("params") or {}).get("labelSelector", ""):
            pods = [] if self.slurmdbd is None else [_slurmdbd(*self.slurmdbd)]
            return msgspec.json.encode(self._page(pods))
        if path.rpartition("/")[2] in self.slurmctlds:
            self.nudges.append(sent["body"]["metadata"]["annotations"])
            return b"{}"
        return await super().request(method, path, **sent)

    @override
    def _read(self, method: str, path: str) -> Manifest:
        if path.rpartition("/")[2] in _LISTED:
            listed = (each for where, each in self.objects.items() if where.startswith(f"{path}/"))
            return self._page(list(listed))
        return super()._read(method, path)

    @override
    def _write(self, method: str, path: str, body: Any, content_type: str) -> bytes:
        if method == "POST":
            where = f"{path}/{body['metadata']['name']}"
            if where in self.objects:
                raise self._conflict(method, where, 409, "AlreadyExists")
            made = copy.deepcopy(body)
            made["metadata"]["uid"] = self._new_uid()
            return msgspec.json.encode(self._store(where, made))
        if method == "DELETE":
            found = self._find(method, path)
            self._guard(method, path, found, body["preconditions"])
            if found["metadata"].get("finalizers"):
                self.leave(found["kind"], found["metadata"]["name"])
            else:
                self._tell(self.objects.pop(path), is_gone=True)
            return b"{}"
        return super()._write(method, path, body, content_type)

    # -- what others do ---------------------------------------------------------------------------

    def put(self, made: Manifest) -> None:
        """Take in an object as a user wrote it."""
        meta = made["metadata"]
        if made["apiVersion"] == API_VERSION:
            where = path(BY_NAME[made["kind"]], meta["namespace"], meta["name"])
        else:
            where = writes.path(made)
        self._store(where, copy.deepcopy(made))

    def change(self, kind: str, name: str, **spec: Any) -> None:
        """Change an object's specification as a user does; `...` takes a field away."""
        where, found = next(
            (where, copy.deepcopy(each))
            for where, each in self.objects.items()
            if (each["kind"], each["metadata"]["name"]) == (kind, name)
        )
        wanted = {key: each for key, each in {**found["spec"], **spec}.items() if each is not ...}
        found["metadata"]["generation"] += 1
        self._store(where, {**found, "spec": wanted})

    def leave(self, kind: str, name: str = "site", *finalizers: str) -> None:
        """Delete an object as a user does; finalizers: what the API server adds."""
        where, found = next(
            (where, copy.deepcopy(each))
            for where, each in self.objects.items()
            if (each["kind"], each["metadata"]["name"]) == (kind, name)
        )
        meta = found["metadata"]
        meta.setdefault("deletionTimestamp", rfc3339(self._clock.now()))
        meta["finalizers"] = [*meta.get("finalizers", ()), *finalizers]
        self._store(where, found)

    def roll_out(self) -> None:
        """Start the pods of all StatefulSets and Deployments."""
        for where, each in list(self.objects.items()):
            if each["kind"] not in ("StatefulSet", "Deployment"):
                continue
            wanted, generation = each["spec"]["replicas"], each["metadata"]["generation"]
            status = {
                "replicas": wanted,
                "readyReplicas": wanted,
                "updatedReplicas": wanted,
                "observedGeneration": generation,
            }
            if each.get("status") != status:
                self._store(where, {**copy.deepcopy(each), "status": status})

    # -- what there is ----------------------------------------------------------------------------

    def made(self) -> set[tuple[str, str]]:
        """Kind and name of all that users have not written."""
        return {
            (stored["kind"], stored["metadata"]["name"])
            for stored in self.objects.values()
            if stored["kind"] not in BY_NAME and not stored["metadata"]["uid"].startswith("uid-m")
        }

    def condition(self, kind: str, wanted: str, name: str = "site") -> tuple[str, str, str]:
        """Status, reason and message of an object's condition."""
        told = self.of(kind)[name]["status"]["conditions"]
        found = next(each for each in told if each["type"] == wanted)
        return found["status"], found["reason"], found.get("message", "")


def _slurmctld(name: str) -> Manifest:
    """A pod whose side-car runs."""
    status = {"name": "reconfigure", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    meta = {"name": name, "namespace": "slurm", "uid": f"uid-of-{name}"}
    return {"metadata": meta, "status": {"initContainerStatuses": [status]}}


def _slurmdbd(last_words: str, serves: bool) -> Manifest:
    """A pod whose init container has ended, or waits to be started again."""
    ended = {"exitCode": 0, "reason": "Completed", "message": last_words}
    tries = {"name": "configuration", "lastState": {"terminated": ended}, "state": {}}
    status = {
        "initContainerStatuses": [tries],
        "containerStatuses": [{"name": "slurmdbd", "ready": serves}],
    }
    meta = {"name": "site-accounting-0", "namespace": "slurm", "uid": "uid-of-slurmdbd"}
    return {"metadata": meta, "status": status}


class Leaders:
    """One leader after another over the same API server."""

    def __init__(
        self,
        clock: Clock,
        trouble: Trouble | None = None,
        *,
        api: type[AppliedTo] = AppliedTo,
    ) -> None:
        self.clock = clock
        self.trouble = trouble or Trouble()
        self.api = api(clock, self.trouble)
        self.metrics = Metrics("operator")
        self.token_users = {"slurm": "alice"}
        self.served = NamespaceScope()
        self.tried = ConfTrials()
        self.slurm: Any = None
        """What answers for the Slurm of every Controller; None if nothing does."""
        self._rng = random.Random(1)  # noqa: S311  # stands for true randomness

    @asynccontextmanager
    async def _slurm_of(self, controller: str) -> AsyncIterator[Any]:
        if self.slurm is None:
            raise Unavailable("GET", controller, message="it has no RestApi")
        yield self.slurm

    async def _host_keys(self) -> Mapping[str, bytes]:
        await self.clock.sleep(1)
        return {file: self._rng.randbytes(32) for file in HOST_KEY_FILES}

    async def lead(
        self, *, for_s: float = SETTLED_S, then: Mapping[float, Callable[[], None]] = {}
    ) -> None:
        """One term of leadership; pods start meanwhile.

        then: what happens so many seconds after its beginning.
        """
        watched: dict[str, Any] = {**PARTS, **WATCHED_WORKLOADS, "NodeSet": NODE_SETS}
        caches: dict[str, Cache[Any]] = {kind: Cache(each) for kind, each in watched.items()}
        self.api._caches = tuple(caches.values())
        for kind, cache in caches.items():
            for found in self.api.of(kind).values():
                cache.put_listed(cache.kind.read(msgspec.json.encode(found)))
        loop = ControlLoop(
            ControlPeers(
                kube=self.api,  # type: ignore[arg-type]  # all it calls
                slurms=self._slurm_of,
                tried=self.tried,
            ),
            PartCaches(
                parts={kind: caches[kind] for kind in PARTS},
                workloads=[caches[kind] for kind in WATCHED_WORKLOADS],
                node_sets=caches["NodeSet"],
            ),
            SITE,
            keys=KeySource(random_bytes=self._rng.randbytes, host_keys=self._host_keys),
            served=self.served,
            tokens=TokenPolicy(users=self.token_users, longest_s=86_400),
            process=process(self.clock, self.metrics),
        )
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for at_s, do in then.items():
                asyncio.get_running_loop().call_later(at_s, do)
            group.create_task(loop.run(stop, workers=2))
            end_s = self.clock.monotonic() + for_s
            while self.clock.monotonic() < end_s:
                await self.clock.sleep(1)
                self.api.roll_out()
            stop.set()


def changed(api: AppliedTo, kind: str, **spec: Any) -> Callable[[], None]:
    """What a user does to the only object of a kind."""
    return partial(api.change, kind, "site", **spec)
