"""Pods that are one gang, and a Job whose pods are."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from slurmruntime.values import names
from tests.integration.worlds import Manifest, Worlds, container, played
from tests.servers import wait_until

CHANGED_WITHIN_S = 60.0
"""A size that no event tells of is read again every ten seconds; a new leader needs its lease first."""

GROUP = "pod-group/{}/{}"


def in_group(name: str, size: int) -> dict[str, Any]:
    return {
        "labels": {names.POD_GROUP_LABEL: name},
        "annotations": {names.POD_GROUP_SIZE_ANNOTATION: str(size)},
    }


def submit(
    worlds: Worlds,
    name: str,
    *,
    group: str,
    size: int,
    cpus: str = "1",
    notes: Mapping[str, str] | None = None,
    **play: Any,
) -> str:
    metadata = in_group(group, size)
    metadata["name"] = name
    metadata["annotations"] |= {**played(**play), **(notes or {})}
    body = {
        "metadata": metadata,
        "spec": {
            "containers": [container(cpus)],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 2,
        },
    }
    return str(worlds.sandbox.admin.create(f"{worlds.path}/pods", body)["metadata"]["uid"])


def uid_of(worlds: Worlds, group: str) -> str:
    return GROUP.format(worlds.namespace, group)


def note(pod: dict[str, Any], key: str) -> str:
    return str(pod["metadata"]["annotations"][key])


def lws_member(worlds: Worlds, group: int, worker: int, size: int) -> str:
    """As a LeaderWorkerSet's pod hook marks it; the set itself cannot be read, so its leader may have to come first."""
    prefix = "leaderworkerset.sigs.k8s.io"
    name = f"serve-{group}" + (f"-{worker}" if worker else "")
    labels = {
        f"{prefix}/name": "serve",
        f"{prefix}/group-index": str(group),
        f"{prefix}/worker-index": str(worker),
    }
    metadata = {"name": name, "labels": labels, "annotations": {f"{prefix}/size": str(size)}}
    spec = {
        "containers": [container()],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 2,
    }
    body = {"metadata": metadata, "spec": spec}
    return str(worlds.sandbox.admin.create(f"{worlds.path}/pods", body)["metadata"]["uid"])


class GangJob:
    """A Job whose pods are one gang, unless they are told otherwise."""

    def __init__(
        self,
        worlds: Worlds,
        name: str,
        pods: int,
        *,
        gang: str = "true",
        notes: Mapping[str, str] = MappingProxyType({}),
        **more: object,
    ) -> None:
        self.worlds = worlds
        self.path = f"/apis/batch/v1/namespaces/{worlds.namespace}/jobs"
        self.name = name
        metadata = {"name": name, "annotations": {names.GANG_ANNOTATION: gang}}
        spec = {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 2,
            "containers": [container("2")],
        }
        whole = {
            "parallelism": pods,
            "template": {"metadata": {"annotations": dict(notes)}, "spec": spec},
            **more,
        }
        body = {"metadata": metadata, "spec": whole}
        self.uid = str(worlds.sandbox.admin.create(self.path, body)["metadata"]["uid"])

    def scale(self, pods: int) -> None:
        self.worlds.sandbox.admin.patch(f"{self.path}/{self.name}", {"spec": {"parallelism": pods}})

    def pods(self) -> list[Manifest]:
        selector = f"batch.kubernetes.io/job-name={self.name}"
        listed = self.worlds.sandbox.admin.get(f"{self.worlds.path}/pods", labelSelector=selector)
        return [pod for pod in listed["items"] if "deletionTimestamp" not in pod["metadata"]]

    def await_running(self, count: int) -> list[Manifest]:
        def found() -> list[Manifest]:
            pods = [pod for pod in self.pods() if pod["status"]["phase"] == "Running"]
            return pods if len(pods) == count else []

        return wait_until(found, CHANGED_WITHIN_S, sandbox=self.worlds.sandbox)
