"""An API server with the control plane's objects and server-side apply, and a leader that may die: in virtual time."""

import asyncio
import copy
import itertools
import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec
from typing_extensions import override

from bridge.kube import errors
from bridge.kube.applying import writes
from bridge.kube.cache import Cache
from bridge.leading.workqueue import WorkQueue
from bridge.process.metrics import Metrics
from bridge.reconcile.set_aside import SetAside
from cluster.controlplane.deciding import BodyMakers
from cluster.controlplane.loop import ControlLoop
from cluster.controlplane.part import PARTS
from cluster.nodesets.nodeset import NODE_SETS
from cluster.objects.parts import API_VERSION
from tests.cluster.examples import BY_NAME, manifest, path
from tests.cluster.rendering.given import SITE
from tests.make.apiserver import ApiServer, Manifest
from tests.make.trouble import Trouble
from tests.virtual_time import VirtualClock

SETTLED_S = 200.0
"""Longer than anything takes: a minute between looks at what is settled, and back-offs."""
_WRITTEN_BY_ALL = ("name", "namespace", "uid")


def secret(name: str, **data: bytes) -> Manifest:
    """A Secret of a user."""
    encoded = {key.replace("_", "."): msgspec.to_builtins(each) for key, each in data.items()}
    meta = {"name": name, "namespace": "slurm", "uid": f"uid-{name}"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": encoded}


PASSWORD = secret("mariadb-password", password=b"hunter2")


def part(kind: str, name: str = "site", /, **changes: Any) -> Manifest:
    """An object of the control plane as the API server has it."""
    made = manifest(kind, name, **changes)
    made["metadata"] |= {"uid": f"uid-{kind}-{name}", "generation": 1}
    return made


def controller(**changes: Any) -> Manifest:
    """A Controller that needs nothing else."""
    return part("Controller", accountingRef=..., prologScriptRefs=..., **changes)


def fields(wanted: object) -> dict[str, Any]:
    """The fields of an applied body as `managedFields` has them; lists are held as a whole."""
    if not isinstance(wanted, Mapping):
        return {}
    return {f"f:{key}": fields(each) for key, each in wanted.items()}


class AppliedTo(ApiServer):
    """Takes bodies by server-side apply, and creates and deletes what the control plane's loop makes."""

    serves_monitors = True
    _named = itertools.count(1)

    @override
    async def request(self, method: str, path: str, **sent: Any) -> bytes:
        if sent.get("content_type") != writes.APPLY:
            return await super().request(method, path, **sent)
        await asyncio.sleep(0)
        body = msgspec.json.decode(msgspec.json.encode(sent["body"]))
        return self._trouble.write(
            f"{method} {path}",
            lambda: self._apply(path, body, sent["params"]),
            fail=lambda fault: errors.Unavailable(method, path, message=fault.value),
        )

    @override
    def _read(self, method: str, path: str) -> Manifest:
        if path == "/apis/monitoring.coreos.com/v1" and self.serves_monitors:
            return {"resources": [{"kind": "ServiceMonitor"}]}
        return super()._read(method, path)

    @override
    def _write(self, method: str, path: str, body: Any, content_type: str) -> bytes:
        if method == "POST":
            where = f"{path}/{body['metadata']['name']}"
            if where in self.objects:
                raise self._conflict(method, where, 409, "AlreadyExists")
            made = copy.deepcopy(body)
            made["metadata"]["uid"] = f"uid-{next(self._named)}"
            return msgspec.json.encode(self._store(where, made))
        if method == "DELETE":
            found = self._find(method, path)
            self._guard(method, path, found, body["preconditions"])
            self._tell(self.objects.pop(path), is_gone=True)
            return b"{}"
        return super()._write(method, path, body, content_type)

    def _apply(self, path: str, body: Manifest, params: Mapping[str, str]) -> bytes:
        if body["kind"] == "ServiceMonitor" and not self.serves_monitors:
            raise errors.NotFound("PATCH", path, status=404)
        manager, meta = params["fieldManager"], body["metadata"]
        found = self.objects.get(path)
        if meta.get("uid") and (found is None or found["metadata"]["uid"] != meta["uid"]):
            raise self._conflict("PATCH", path, 409, "another uid")
        own = {key: each for key, each in meta.items() if key not in _WRITTEN_BY_ALL}
        parts = {key: each for key, each in body.items() if key not in ("apiVersion", "kind")}
        managed = {
            "manager": manager,
            "operation": "Apply",
            "fieldsV1": fields({**parts, "metadata": own}),
        }
        if found is None:
            new = {**body, "metadata": {**meta, "uid": f"uid-{next(self._named)}", "generation": 1}}
        else:
            if params["force"] != "true" and not _is_held(found, manager):
                raise self._conflict("PATCH", path, 409, "fields of others")
            kept = {key: each for key, each in found["metadata"].items() if key not in own}
            new = {**body, "metadata": {**kept, **own}}
            if "status" in found:
                new["status"] = found["status"]
            if found.get("spec") != new.get("spec"):
                new["metadata"]["generation"] += 1
        new["metadata"]["managedFields"] = [managed]
        if found is not None and _without_version(found) == _without_version(new):
            return msgspec.json.encode(found)
        return msgspec.json.encode(self._store(path, new))

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
            (each["kind"], each["metadata"]["name"])
            for each in self.objects.values()
            if each["kind"] not in BY_NAME and not each["metadata"]["uid"].startswith("uid-m")
        }

    def condition(self, kind: str, wanted: str, name: str = "site") -> tuple[str, str, str]:
        """Status, reason and message of an object's condition."""
        told = self.of(kind)[name]["status"]["conditions"]
        found = next(each for each in told if each["type"] == wanted)
        return found["status"], found["reason"], found.get("message", "")


def _is_held(found: Manifest, manager: str) -> bool:
    return any(each["manager"] == manager for each in found["metadata"].get("managedFields", ()))


def _without_version(found: Manifest) -> Manifest:
    meta = {key: each for key, each in found["metadata"].items() if key != "resourceVersion"}
    return {**found, "metadata": meta}


class Leaders:
    """One leader after another over the same API server."""

    def __init__(self, clock: VirtualClock, trouble: Trouble | None = None) -> None:
        self.clock = clock
        self.trouble = trouble or Trouble()
        self.api = AppliedTo(clock, self.trouble)
        self.metrics = Metrics("operator")
        self._rng = random.Random(1)  # noqa: S311  # stands for true randomness

    async def lead(
        self, *, for_s: float = SETTLED_S, then: Mapping[float, Callable[[], None]] = {}
    ) -> None:
        """One term of leadership; pods start meanwhile.

        then: what happens so many seconds after its beginning.
        """
        caches: tuple[Any, ...] = (*(Cache(each) for each in PARTS.values()), Cache(NODE_SETS))
        self.api._caches = caches
        for kind, cache in zip((*PARTS, "NodeSet"), caches, strict=True):
            for found in self.api.of(kind).values():
                cache.put_listed(cache.kind.read(msgspec.json.encode(found)))
        loop = ControlLoop(
            kube=self.api,  # type: ignore[arg-type]  # all it calls
            parts=dict(zip(PARTS, caches, strict=False)),
            node_sets=caches[-1],
            make=BodyMakers(SITE),
            queue=WorkQueue(rng=random.Random(1)),  # noqa: S311  # jitter
            clock=self.clock,
            metrics=self.metrics,
            set_aside=SetAside(self.metrics, self.clock),
            random_bytes=self._rng.randbytes,
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
