"""An API server whose StatefulSets, Deployments and NodeSets have pods, which get another key one after the other."""

import copy
from typing import Any

import msgspec
from typing_extensions import override

from slurmoperator.keys import rings
from slurmoperator.keys.mounts import MountingSpec, mounted_steps
from slurmoperator.objects.parts import API_VERSION, KeyOfObject
from slurmoperator.rendering import pods
from slurmruntime.kube.client import MERGE_PATCH
from tests.make.apiserver import Manifest
from tests.slurmoperator.daemons.peers import AppliedTo, part

KEY = KeyOfObject(name="site-auth-slurm", key="slurm.key")
RING = "site-auth-slurm-ring"
WORKER = "worker"
_REVISIONS = "/apis/apps/v1/namespaces/slurm/controllerrevisions"


def workers() -> Manifest:
    """A NodeSet that needs no gres.conf."""
    return part("NodeSet", extraConf=..., ssh=...)


class WithPods(AppliedTo):
    """Each workload has one pod for all; one of them is replaced at a time, and all must understand each other."""

    is_busy = False
    """The worker has a job, so it stays."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.written: dict[str, str] = {}
        """All that ever stood in the ring."""
        self.seen: list[int] = []
        """The steps of the worker, in order."""

    @override
    def roll_out(self) -> None:
        self._tell_workloads()
        if not (self._workloads_go_on() or self._node_sets_go_on()):
            self._tell_workloads()
        self.check()

    @override
    def _write(self, method: str, path: str, body: Any, content_type: str) -> bytes:
        if path.endswith(f"/{RING}") and method == "PATCH":
            assert content_type == MERGE_PATCH
            assert "resourceVersion" in body["metadata"], "a write without a guard"
        return super()._write(method, path, body, content_type)

    def check(self) -> None:
        """All pods understand each other, and nothing was written twice."""
        running = [pod for pod in self.pods.values() if pod["status"]["phase"] == "Running"]
        steps = [step for each in running for step in steps_of(each)]
        for one in steps:
            for other in steps:
                assert rings.signing_key(one) in rings.accepted_keys(other), {
                    name: steps_of(each) for name, each in self.pods.items()
                }
        for item, text in self.of("Secret").get(RING, {}).get("data", {}).items():
            assert text == self.written.setdefault(item, text), f"{item} was written twice"

    def start(self, name: str, spec: Manifest) -> None:
        """Start a pod, in the place of an older one of that name."""
        meta = {"name": name, "namespace": "slurm", "uid": self._new_uid()}
        status = {"phase": "Running"}
        self.create({"kind": "Pod", "metadata": meta, "spec": spec, "status": status})

    def _workloads_go_on(self) -> bool:
        for workload in self._workloads():
            if not self._is_current(workload):
                self.start(_pod_of(workload), copy.deepcopy(workload["spec"]["template"]["spec"]))
                return True
        return False

    def _tell_workloads(self) -> None:
        for where, each in list(self.objects.items()):
            if each["kind"] not in ("StatefulSet", "Deployment"):
                continue
            wanted, is_current = each["spec"]["replicas"], self._is_current(each)
            status = {
                "replicas": wanted,
                "readyReplicas": wanted if is_current else 0,
                "updatedReplicas": wanted if is_current else 0,
                "observedGeneration": each["metadata"]["generation"],
            }
            if each.get("status") != status:
                self._store(where, {**copy.deepcopy(each), "status": status})

    def _workloads(self) -> list[Manifest]:
        return [
            manifest
            for manifest in self.objects.values()
            if manifest["kind"] in ("StatefulSet", "Deployment")
        ]

    def _is_current(self, workload: Manifest) -> bool:
        pod = self.pods.get(_pod_of(workload))
        volumes = workload["spec"]["template"]["spec"]["volumes"]
        return pod is not None and pod["spec"]["volumes"] == volumes

    def _node_sets_go_on(self) -> bool:
        """What the controller of NodeSets does: first the revision, then the worker."""
        found = self.of("NodeSet").get("site")
        controller = self.of("Controller").get("site")
        if found is None or controller is None:
            return False
        step = controller.get("status", {}).get("slurmKeyStep", 0)
        where = f"{_REVISIONS}/site-{step}"
        if where not in self.objects:
            self._store(where, _revision(found["metadata"]["uid"], step))
            return True
        worker = self.pods.get(WORKER)
        if worker is not None and (step in steps_of(worker) or self.is_busy):
            return False
        self.seen.append(step)
        volume = pods.projected(pods.ETC_VOLUME, 0o600, pods.slurm_key(KEY, step))
        self.start(WORKER, {"volumes": [volume]})
        return True

    # -- what others do ---------------------------------------------------------------------------

    def annotate(self, **annotations: str) -> None:
        """Set the annotations of the Controller; the names are without their domain."""
        found = copy.deepcopy(self.of("Controller")["site"])
        marks = {
            f"slurm-bridge.dev/{key.replace('_', '-')}": each for key, each in annotations.items()
        }
        found["metadata"]["annotations"] = marks
        self.put(found)

    def mark(self, number: int) -> None:
        """Ask for a key."""
        self.annotate(slurm_key_number=str(number))


def steps_of(pod: Manifest) -> list[int]:
    """The steps of the daemons' key that a pod has."""
    spec = msgspec.json.decode(msgspec.json.encode(pod["spec"]), type=MountingSpec)
    return sorted(mounted_steps(spec, KEY))


def _pod_of(workload: Manifest) -> str:
    return f"{workload['kind'].lower()}-{workload['metadata']['name']}"


def _revision(node_set: str, step: int) -> Manifest:
    owner = {
        "apiVersion": API_VERSION,
        "kind": "NodeSet",
        "name": "site",
        "uid": node_set,
        "controller": True,
    }
    meta = {
        "name": f"site-{step}",
        "namespace": "slurm",
        "uid": f"revision-{step}",
        "ownerReferences": [owner],
    }
    data = {"spec": {}, **({"slurmKeyStep": step} if step else {})}
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": meta,
        "revision": step + 1,
        "data": data,
    }
