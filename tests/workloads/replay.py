"""Plays an operator from its recording: makes what it made, under fresh uids, and does what it did when pods ended.

Whatever has a real controller in the sandbox is left to it: a Job's and a StatefulSet's pods, a JobSet's Jobs. The
operators' own kinds are served by CRDs that let any field through.
"""

import json
from collections.abc import Iterable
from typing import Any

from sandbox.api import Api, ApiError
from tests.integration.worlds import Manifest
from tests.recorded.recording import Recording
from tests.servers import wait_until
from tests.workloads.kinds import Kinds

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SERVED = ("v1", "apps/v1", "batch/v1", "jobset.x-k8s.io/v1alpha2", "scheduling.x-k8s.io/v1alpha1")
_HAVE_CONTROLLERS = ("Job", "JobSet", "StatefulSet")
_KUEUES = "kueue.x-k8s.io/managed"
"""Finalizer that Kueue takes off its pods when their group is over."""
_CRD_DEADLINE_S = 60
_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class Operator:
    """Acts in one namespace as one recording says."""

    def __init__(self, kinds: Kinds, recording: Recording) -> None:
        self._kinds = kinds
        self._recording = recording
        self._uids: dict[str, str] = {}
        """Those that were recorded, and what they are here."""

    def start(self) -> None:
        """Make what was made at once, in that order."""
        for manifest in self._recording.objects:
            if not self._is_later(manifest):
                self._make(manifest)

    def follow(self) -> None:
        """Make what was made when the pods ran."""
        for manifest in filter(self._is_later, self._recording.objects):
            self._make(manifest)

    def admit(self) -> None:
        """Let a group's pods go on, as Kueue does."""
        for name in self._pods():
            self._patch(name, self._recording.admission)

    def clean_up(self) -> None:
        """Delete the pods that still run, as the cleanPodPolicy of Kubeflow's jobs says."""
        for pod in self._kinds.running(""):
            self._kinds.worlds.delete(pod["metadata"]["name"])

    def release(self) -> None:
        """Take Kueue's finalizer off, once nobody else's is on."""
        pods = self._pods()
        self._kinds.until(lambda: all(self._finalizers(name) == [_KUEUES] for name in pods))
        for name in pods:
            self._patch(name, {"metadata": {"finalizers": None}})

    def delete(self) -> None:
        """As `kubectl delete` of the user's object: Kubernetes' garbage collector follows its owners."""
        if self._recording.root["kind"] == "Pod":
            self._kinds.worlds.clear()
            return
        path = f"{self._path(self._recording.root)}/{self._recording.root['metadata']['name']}"
        self._kinds.api.delete(path, propagationPolicy="Background")

    def uid(self, kind: str) -> str:
        """That of the first object of a kind."""
        return self._uids[self._recording.of_kind(kind)[0]["metadata"]["uid"]]

    def _make(self, manifest: Manifest) -> None:
        owner = self._recording.owner_of(manifest)
        if owner is not None and owner["kind"] in _HAVE_CONTROLLERS:
            return
        text = json.dumps(manifest)
        for recorded, uid in self._uids.items():  # in owner references, labels and annotations
            text = text.replace(recorded, uid)
        body = json.loads(text)
        recorded = body["metadata"].pop("uid")
        made = self._kinds.api.create(self._path(manifest), body)
        self._uids[recorded] = made["metadata"]["uid"]

    def _is_later(self, manifest: Manifest) -> bool:
        job = manifest["kind"] == "Job"
        return job and manifest["metadata"]["name"] in self._recording.made_later

    def _pods(self) -> list[str]:
        return [pod["metadata"]["name"] for pod in self._kinds.pods("")]

    def _finalizers(self, name: str) -> list[str]:
        pod = self._kinds.worlds.pod(name)
        return pod["metadata"].get("finalizers", []) if pod else []

    def _patch(self, name: str, patch: dict[str, Any]) -> None:
        self._kinds.api.patch(f"{self._kinds.worlds.path}/pods/{name}", patch)

    def _path(self, manifest: Manifest) -> str:
        version, namespace = manifest["apiVersion"], self._kinds.worlds.namespace
        root = "/api/v1" if version == "v1" else f"/apis/{version}"
        return f"{root}/namespaces/{namespace}/{_plural(manifest['kind'])}"


def serve(api: Api, recordings: Iterable[Recording]) -> None:
    """Have the API server know the operators' own kinds."""
    objects = (manifest for recording in recordings for manifest in recording.objects)
    kinds = {(manifest["apiVersion"], manifest["kind"]) for manifest in objects}
    names = [_create(api, *kind) for kind in sorted(kinds) if kind[0] not in _SERVED]
    wait_until(lambda: all(_is_served(api, name) for name in names), _CRD_DEADLINE_S)


def _create(api: Api, api_version: str, kind: str) -> str:
    group, _, version = api_version.partition("/")
    name = f"{_plural(kind)}.{group}"
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _ANYTHING},
    }
    spec = {
        "group": group,
        "names": {"kind": kind, "plural": _plural(kind), "singular": kind.lower()},
        "scope": "Namespaced",
        "versions": [served],
    }
    try:
        api.create(_CRDS, {"metadata": {"name": name}, "spec": spec})
    except ApiError as error:
        if error.status != 409:
            raise
    return name


def _is_served(api: Api, name: str) -> bool:
    conditions = api.get(f"{_CRDS}/{name}").get("status", {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def _plural(kind: str) -> str:
    return f"{kind.lower()}s"
