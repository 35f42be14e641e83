"""An API server with NodeSets and a kubelet, a Slurm with the workers' nodes, and a leader that may die: in virtual time."""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import msgspec
from typing_extensions import override

from slurmclient.errors import Declined, LostReply, Unavailable
from slurmoperator.nodesets.conf_trials import ConfTrials
from slurmoperator.nodesets.gathering import NodeSetCaches
from slurmoperator.nodesets.loop import NodeSetLoop
from slurmoperator.nodesets.names import KUBE_NODE_ANNOTATION
from slurmoperator.nodesets.nodeset import NODE_SETS, WatchedNodeSet
from slurmoperator.nodesets.preparation import WorkerSource
from slurmoperator.nodesets.worker_pods import WORKER_PODS, WorkerPodObject
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.parts import KeyOfObject
from slurmoperator.objects.workers import WorkerKey, host_name
from slurmoperator.rendering import pods
from slurmoperator.rendering.node_sets.claims import with_claims
from slurmoperator.rendering.site import NamespaceScope
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.errors import Malformed
from slurmruntime.kube.meta import rfc3339
from slurmruntime.kube.node_objects import NODES
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.faults import Fault, Refusal
from tests.make.apiserver import Manifest
from tests.make.applied import ApplyingServer
from tests.make.processes import process
from tests.make.slurm import Job, Slurm, number
from tests.make.slurm_nodes import Node
from tests.make.trouble import Trouble
from tests.slurmoperator.examples import manifest
from tests.virtual_time import EPOCH, VirtualClock

READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2025-12-31T00:00:00Z"}


_CREATED = ("/pods", "/controllerrevisions", "/persistentvolumeclaims")
"""Collections into which objects are posted; others are applied."""
KEY = KeyOfObject(name="site-auth-slurm", key="slurm.key")
SETTLED_S = 40.0
"""Longer than anything takes that does not wait for a job."""


def job(number: int, nodes: str) -> Job:
    """A job that runs."""
    return Job(id=number, comment="", state="RUNNING", nodes=nodes)


def node_set(name: str = "gpu", *, replicas: int, **changes: Any) -> Manifest:
    """A NodeSet as the API server has it: its workers are NAME-0, NAME-1 and so on in Slurm too."""
    fields = {"volumeClaimTemplates": ..., "replicas": replicas, "template": None, **changes}
    made = manifest("NodeSet", name, **fields)
    made["metadata"] |= {
        "uid": f"uid-{name}",
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return made


def worker_pod(of: NodeSetObject, key: WorkerKey, key_step: int) -> dict[str, Any]:
    """The least that makes a worker; one that cannot be made has a wrong image."""
    if "image" not in (of.spec.slurmd or {}):
        raise Refusal(Fault("spec.slurmd.image", "expected an image"))
    image = of.spec.slurmd["image"] if of.spec.slurmd else ""
    spec: dict[str, Any] = {"hostname": host_name(of, key), "containers": [{"image": image}]}
    if of.spec.volume_claim_templates:
        spec = with_claims(of, key, spec)
    if key_step:
        spec["volumes"] = [pods.projected(pods.ETC_VOLUME, 0o600, pods.slurm_key(KEY, key_step))]
    return {"spec": spec}


class Cluster(ApplyingServer):
    """Creates pods, too, and stores what it is told of NodeSets."""

    unstartable: frozenset[str] = frozenset()
    """Images whose workers do not become ready."""

    @override
    def _write(self, method: str, path: str, body: Any, content_type: str) -> bytes:
        if method == "POST" and path.endswith(_CREATED):
            where = f"{path}/{body['metadata']['name']}"
            if where in self.objects:
                raise self._conflict(method, where, 409, "AlreadyExists")
            made = copy.deepcopy(body)
            made["metadata"]["uid"] = f"made-{self._version}"
            made["metadata"]["creationTimestamp"] = rfc3339(self._clock.now())
            return msgspec.json.encode(self._store(where, made))
        if method == "DELETE" and "/pods/" not in path:
            found = self._find(method, path)
            self._guard(method, path, found, body["preconditions"])
            self._tell(self.objects.pop(path), is_gone=True)
            return b"{}"
        return super()._write(method, path, body, content_type)

    @override
    def _read(self, method: str, path: str) -> Manifest:
        if path.endswith("/controllerrevisions"):
            return self._page(list(self.of("ControllerRevision").values()))
        if path.endswith("/persistentvolumeclaims"):
            found = self.of("PersistentVolumeClaim").values()  # they are listed by labels
            return self._page([each for each in found if each["metadata"].get("labels")])
        if path.endswith("/nodesets"):
            return self._page(list(self.of("NodeSet").values()))
        return super()._read(method, path)

    def put(self, manifest: Manifest) -> None:
        """Take in a NodeSet as a user wrote it, or a pod, or a node."""
        if manifest["kind"] != "NodeSet":
            self.create(manifest)
            return
        meta = manifest["metadata"]
        path = f"{NODE_SETS.path.removesuffix('/nodesets')}/namespaces/{meta['namespace']}/nodesets"
        self._store(f"{path}/{meta['name']}", copy.deepcopy(manifest))

    def change(self, kind: str, name: str, **parts: Any) -> None:
        """Change parts of an object, such as `spec`, as somebody else would."""
        path = next(
            path
            for path, each in self.objects.items()
            if (each["kind"], each["metadata"]["name"]) == (kind, name)
        )
        found = copy.deepcopy(self.objects[path])
        for part, changes in parts.items():
            found[part] = {**found.get(part, {}), **changes}
        if "spec" in parts:
            generation = found["metadata"].get("generation", 0) + 1
            found["metadata"]["generation"] = generation
        self._store(path, found)

    def kubelet(self, slurm: "Workers", *, start: bool = True) -> None:
        """Bind, start and register what is there, and end what is to end."""
        for name, pod in self.pods.items():
            if "deletionTimestamp" in pod["metadata"]:
                slurm.nodes.by_name.pop(pod["spec"]["hostname"], None)
                self.remove("Pod", name)
            elif start and "status" not in pod and not self._is_stuck(pod):
                slurm.register(pod["spec"]["hostname"])
                own = pod["metadata"].get("annotations", {}).get(KUBE_NODE_ANNOTATION)
                self.change(
                    "Pod",
                    name,
                    spec={"nodeName": own or f"machine-{name}"},
                    status={"phase": "Running", "conditions": [READY]},
                )

    def _is_stuck(self, pod: Manifest) -> bool:
        return pod["spec"]["containers"][0]["image"] in self.unstartable

    def status(self, name: str) -> Manifest:
        """What a NodeSet was told."""
        return dict(self.of("NodeSet")[name].get("status", {}))

    def condition(self, name: str, kind: str) -> Manifest:
        """One of a NodeSet's conditions."""
        return next(
            condition for condition in self.status(name)["conditions"] if condition["type"] == kind
        )


class Workers(Slurm):
    """Lists jobs with their nodes; may be away."""

    late_s = 0.0
    """So long after its reply was lost the next change of a node takes effect; 0: there is a reply."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.reservations: dict[str, dict[str, Any]] = {}
        """As they were asked for, by name."""
        self.refused_reservations = ""
        """Why none is made."""

    @override
    def _change_node(self, operation: str, method: str, name: str, body: Any) -> None:
        late_s, self.late_s = self.late_s, 0.0
        change = partial(super()._change_node, operation, method, name, body)
        if not late_s:
            change()
            return

        def change_at_last() -> None:
            with suppress(Declined):  # the node is gone, and nobody waits for the answer
                change()

        asyncio.get_running_loop().call_later(late_s, change_at_last)
        raise LostReply(operation, "no answer")

    def end_all_on(self, name: str) -> None:
        """End the jobs of a node."""
        for each in self._running_on(name):
            del self.jobs[each.id]

    def register(self, name: str) -> None:
        if name not in self.nodes.by_name:
            self.nodes.by_name[name] = Node(
                name=name, states={"IDLE", "DYNAMIC_NORM"}, gres="gpu:a100:4"
            )

    @override
    def _read(self, operation: str, path: str) -> dict[str, Any]:
        if path == "/jobs/":
            return {"jobs": [job.wired() for job in self.jobs.values()]}
        if path == "/reservations/":
            return {
                "reservations": [
                    self._reserved(reservation) for reservation in self.reservations.values()
                ]
            }
        return super()._read(operation, path)

    @override
    def _write(self, operation: str, method: str, path: str, body: Any) -> dict[str, Any]:
        if not operation.startswith("reservation."):
            return super()._write(operation, method, path, body)
        if method == "DELETE":
            if self.reservations.pop(path.rsplit("/", 1)[-1], None) is None:
                raise Declined(operation, "no such reservation", error_number=2053)
        elif self.refused_reservations:
            raise Declined(operation, self.refused_reservations, error_number=2016)
        elif operation == "reservation.extend":  # what it does not have, it leaves out
            known = [name for name in body["node_list"] if name in self.nodes.by_name]
            self.reservations[body["name"]]["node_list"] = known
        elif {*body["node_list"]} - {*self.nodes.by_name}:
            raise Declined(operation, "Invalid node name specified", error_number=2018)
        else:
            self.reservations[body["name"]] = body
        return {}

    @override
    def _wired(self, node: Node) -> dict[str, Any]:
        """As `Slurm` has it, in maintenance while a reservation of it has begun."""
        found = super()._wired(node)
        for name, each in self.reservations.items():
            begin_s, end_s = _times(each)
            now_s = EPOCH.timestamp() + asyncio.get_running_loop().time()
            if node.name in each["node_list"] and begin_s <= now_s < end_s:
                states = [*found["state"], "MAINTENANCE", "RESERVED"]
                found = {**found, "state": states, "reservation": name}
        return found

    def _reserved(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        begin_s, end_s = _times(asked)
        return {
            "name": asked["name"],
            "node_list": ",".join(asked["node_list"]),
            "flags": [*asked["flags"], "SPEC_NODES"],
            "start_time": number(begin_s),
            "end_time": number(end_s),
        }


def _times(asked: Mapping[str, Any]) -> tuple[int, int]:
    """Begin and end of a reservation, in seconds since 1970."""
    begin_s, minutes = (int(asked[key]["number"]) for key in ("start_time", "duration"))
    return begin_s, begin_s + 60 * minutes


class Away:
    """A Slurm that does not answer."""

    async def call(self, label: str, *_: Any, **__: Any) -> Any:
        raise Unavailable(label, "Controller has no RestApi with replicas")

    each_of = call


class Odd:
    """A Slurm at whose name or answer our code fails."""

    async def call(self, label: str, *_: Any, **__: Any) -> Any:
        raise UnicodeError("label empty or too long")

    each_of = call


OTHER_SLURMS: Mapping[str, Any] = {"slurm/other": Away(), "slurm/odd": Odd()}


class Operator:
    """One leader after another over the same peers."""

    def __init__(self, clock: VirtualClock, trouble: Trouble | None = None) -> None:
        self.clock = clock
        self.trouble = trouble or Trouble()
        self.slurm = Workers(self.trouble, ())
        self.api = Cluster(clock, self.trouble)
        self.metrics = Metrics("operator")
        self.opened: list[str] = []
        self.served = NamespaceScope()
        self.key_step = 0
        self.tried = ConfTrials()

    def caches(self) -> tuple[Cache[WatchedNodeSet], Cache[WorkerPodObject], Cache[KubeNodeFacts]]:
        """Caches as a new process fills them."""
        made: tuple[Any, ...] = (Cache(NODE_SETS), Cache(WORKER_PODS), Cache(NODES))
        self.api._caches = made
        for kind, cache in zip(("NodeSet", "Pod", "Node"), made, strict=True):
            for found in self.api.of(kind).values():
                try:
                    cache.put_listed(cache.kind.read(msgspec.json.encode(found)))
                except Malformed:
                    meta = found["metadata"]
                    cache.unreadable[meta["uid"]] = meta["name"]
        return made

    @asynccontextmanager
    async def _slurm_of(self, controller: str) -> AsyncIterator[Any]:
        """One Slurm, and others of which nothing is known."""
        self.opened.append(controller)
        yield self.slurm if controller == "slurm/site" else OTHER_SLURMS[controller]

    async def lead(
        self, *, for_s: float, kubelet: bool = True, then: Mapping[float, Callable[[], None]] = {}
    ) -> None:
        """One term of leadership; pods start and end meanwhile.

        then: what happens so many seconds after its beginning.
        """
        node_sets, pods, kube_nodes = self.caches()
        loop = NodeSetLoop(
            self.api,  # type: ignore[arg-type]  # all it calls
            NodeSetCaches(node_sets=node_sets, pods=pods, kube_nodes=kube_nodes),
            slurms=self._slurm_of,
            source=WorkerSource(
                templates=worker_pod, key_step=lambda _: self.key_step, tried=self.tried
            ),
            served=self.served,
            process=process(self.clock, self.metrics),
        )
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            for at_s, do in then.items():
                asyncio.get_running_loop().call_later(at_s, do)
            group.create_task(loop.run(stop, workers=2))
            end_s = self.clock.monotonic() + for_s
            while self.clock.monotonic() < end_s:
                await self.clock.sleep(0.5)
                self.api.kubelet(self.slurm, start=kubelet)
            stop.set()


def names_of(pods: Mapping[str, Manifest]) -> list[str]:
    """The pods that are not being deleted."""
    return sorted(n for n, pod in pods.items() if "deletionTimestamp" not in pod["metadata"])
