"""Claims, a class and a node's devices, as users and drivers write them, for the peers in memory."""

from collections.abc import Collection
from datetime import timedelta
from typing import Any

from slurmruntime.kube.meta import rfc3339
from tests.make.apiserver import Manifest
from tests.make.manifests import GATED, pod
from tests.virtual_time import EPOCH

SELECTOR = "device.driver == 'd'"
PROFILES = {SELECTOR: "gpu:example"}


def device_class() -> Manifest:
    return _made("DeviceClass", "gpu", {"selectors": [{"cel": {"expression": SELECTOR}}]})


def device_slice(node: str = "s1", devices: int = 2) -> Manifest:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    found = [{"name": f"gpu-{index}"} for index in range(devices)]
    spec = {"driver": "d", "nodeName": node, "pool": pool, "devices": found}
    return _made("ResourceSlice", f"slice-{node}", spec)


def template(name: str = "mine", count: int = 1) -> Manifest:
    """A user's template for so many devices."""
    exactly = {"deviceClassName": "gpu", "count": count}
    spec = {"spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "team-a", "uid": f"u-{name}"},
        "spec": spec,
    }


def claim(name: str, *, given: str = "", to: str = "", node: str = "s1") -> Manifest:
    """A claim for one device; given: the device that it has, `gpu-0`; to: the pod's name."""
    exactly = {"deviceClassName": "gpu", "count": 1}
    found = _made(
        "ResourceClaim", name, {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    )
    found["metadata"]["namespace"] = "team-a"
    if given:
        result = {"request": "r", "driver": "d", "pool": node, "device": given}
        terms = [{"key": "metadata.name", "operator": "In", "values": [node]}]
        selector = {"nodeSelectorTerms": [{"matchFields": terms}]}
        found["status"] = {
            "allocation": {"devices": {"results": [result]}, "nodeSelector": selector},
            "reservedFor": [{"resource": "pods", "name": to, "uid": f"uid-{to}"}],
        }
    return found


def claiming(name: str, *claims: str) -> Manifest:
    """A gated pod that uses claims, each its own by default."""
    entries = [{"name": each, "resourceClaimName": each} for each in claims or (name,)]
    return pod(name, {**GATED, "resourceClaims": entries})


def by_class(name: str, *, devices: int = 1) -> Manifest:
    """A gated pod that asked for devices by their class, as it has just come out of admission."""
    template = f"slurm-bridge-{devices}-of-gpu"
    entry = {"name": "slurm-bridge-0", "resourceClaimTemplateName": template}
    found = pod(name, {**GATED, "resourceClaims": [entry]})
    found["metadata"]["creationTimestamp"] = rfc3339(EPOCH)
    return found


def templated(name: str, *entries: str, named: Collection[str]) -> Manifest:
    """A gated pod whose claims are made from a template; named: the entries that its status names a claim for."""
    claims = [{"name": entry, "resourceClaimTemplateName": "mine"} for entry in entries]
    found = pod(name, {**GATED, "resourceClaims": claims})
    found["status"]["resourceClaimStatuses"] = [
        {"name": each, "resourceClaimName": f"{name}-{each}"} for each in named
    ]
    return found


def made_for(pod_name: str, entry: str, name: str = "") -> Manifest:
    """The claim that the resource claim controller has made for a pod's entry."""
    found = claim(name or f"{pod_name}-{entry}")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod_name, "uid": f"uid-{pod_name}"}
    found["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    found["metadata"]["annotations"] = {"resource.kubernetes.io/pod-claim-name": entry}
    return found


def _made(kind: str, name: str, spec: dict[str, Any]) -> Manifest:
    metadata = {
        "name": name,
        "uid": f"uid-{name}",
        "creationTimestamp": rfc3339(EPOCH - timedelta(minutes=5)),
    }
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}
