"""Fifty odd things that people with rights, or programs gone wrong, can put into both systems.

Pods are patched by somebody whom no policy stops (break glass); jobs are a Slurm operator's, with
our mark in their `admin_comment`; nodes are an administrator's.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import httpx

from sandbox import nss
from sandbox.api import Api, ApiError
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from sandbox.slurm_rest import API, credentials
from slurmruntime.values import names
from slurmruntime.values.names import REQUEST_PREFIX

Manifest = dict[str, Any]

_DIGITS = "9" * 5000
_LONG = "x" * 200_000
_DEEP = "[" * 5000
_PATIENCE_S = 120.0
_POLL_S = 0.1
_BREAK_GLASS = ("system:masters", "slurm-bridge:break-glass")


def _noted(key: str, value: str) -> Manifest:
    return {"metadata": {"annotations": {key: value}}}


RUNNING_PODS: Mapping[str, Manifest] = {
    "workload of somebody else": _noted(names.WORKLOAD_ANNOTATION, "somebody-else"),
    "workload of 200 kB": _noted(names.WORKLOAD_ANNOTATION, _LONG),
    "empty workload": _noted(names.WORKLOAD_ANNOTATION, ""),
    "rank of 5000 digits": _noted(names.RANK_ANNOTATION, _DIGITS),
    "rank below 0": _noted(names.RANK_ANNOTATION, "-1"),
    "rank that is no number": _noted(names.RANK_ANNOTATION, "٣"),
    "world size of 5000 digits": _noted(names.WORLD_SIZE_ANNOTATION, _DIGITS),
    "node list of 200 kB": _noted(names.NODELIST_ANNOTATION, _LONG),
    "pinned to no node": _noted(names.NODE_ANNOTATION, "nowhere"),
    "pinned to 200 kB": _noted(names.NODE_ANNOTATION, _LONG),
    "SLUID that is none": _noted(names.SLUID_ANNOTATION, "\\u0000"),
    "grant that is no JSON": _noted(names.GRANT_ANNOTATION, _DEEP),
    "grant with numbers of 5000 digits": _noted(names.GRANT_ANNOTATION, f'{{"cpus":{_DIGITS}}}'),
    "grant of 200 kB": _noted(names.GRANT_ANNOTATION, json.dumps({"nodes": _LONG})),
    "unknown word about a loss": _noted(names.WHEN_LOST_ANNOTATION, "maybe"),
    "no requester": _noted(names.REQUESTER_ANNOTATION, ""),
    "requester of 200 kB": _noted(names.REQUESTER_ANNOTATION, _LONG),
    "rules that are no JSON": _noted(names.RULES_ANNOTATION, _DEEP),
    "time limit of 5000 digits": _noted(f"{REQUEST_PREFIX}timelimit", _DIGITS),
    "job id that is no number": {"metadata": {"labels": {names.JOB_ID_LABEL: "x"}}},
    "job id beyond Slurm's": {"metadata": {"labels": {names.JOB_ID_LABEL: "9" * 60}}},
    "job id of nobody": {"metadata": {"labels": {names.JOB_ID_LABEL: "4000000000"}}},
}
"""A merge patch, by what is odd about the pod."""

NEW_PODS: Mapping[str, Manifest] = {
    "group size of 5000 digits": {
        "metadata": {
            "labels": {names.POD_GROUP_LABEL: "odd"},
            "annotations": {names.POD_GROUP_SIZE_ANNOTATION: _DIGITS},
        }
    },
    "group of 9999": {
        "metadata": {
            "labels": {names.POD_GROUP_LABEL: "large"},
            "annotations": {names.POD_GROUP_SIZE_ANNOTATION: "9999"},
        }
    },
    "two groups": {
        "metadata": {"labels": {names.POD_GROUP_LABEL: "a", "kueue.x-k8s.io/pod-group-name": "b"}}
    },
    "1000 gates of others": {
        "spec": {"schedulingGates": [{"name": f"example.test/g{i}"} for i in range(1000)]}
    },
    "fifty owners that are not there": {
        "metadata": {
            "ownerReferences": [
                {"apiVersion": "example.test/v1", "kind": "Odd", "name": f"o{i}", "uid": f"u{i}"}
                for i in range(50)
            ]
        }
    },
    "a selector that fits no node": {"spec": {"nodeSelector": {"example.test/no": "node"}}},
    "more CPUs than any node has": {
        "spec": {"containers": [{"resources": {"requests": {"cpu": "9999"}}}]}
    },
    "a grace of a year": {"spec": {"terminationGracePeriodSeconds": 31_536_000}},
}
"""Merged into an ordinary pod; some of them are refused at CREATE, which is as good."""


def comments(cluster: str) -> Mapping[str, str]:
    """Return what stands in a job's admin_comment, by what is odd about it.

    cluster: our cluster's id.
    """
    whole = {
        "slurm-bridge": 1,
        "cluster": cluster,
        "kind": "Pod",
        "namespace": "odd",
        "name": "odd",
        "uid": "odd",
        "pods": ["odd"],
    }

    def but(**changed: object) -> str:
        return json.dumps({**whole, **changed})

    return {
        "not even JSON": "{",
        "5000 brackets": _DEEP,
        "only our mark": '{"slurm-bridge":1}',
        "a version to come": but(**{"slurm-bridge": 99}),
        "a version of 5000 digits": f'{{"slurm-bridge":{_DIGITS}}}',
        "another cluster's": but(cluster="somebody-else's"),
        "a cluster that is a list": but(cluster=[1, 2]),
        "pods that are no list": but(pods="odd"),
        "pods that are no names": but(pods=[None, {"a": 1}]),
        "four thousand pods": but(pods=[f"odd-{number}" for number in range(4000)]),
        "no pod": but(pods=[]),
        "a limit that is none": but(limit=["x", {}]),
        "misfits that are no names": but(misfits=[[], 1]),
        "failures that are a list": but(failed=["x"]),
    }


NODES: Mapping[str, Manifest] = {
    "weight of 5000 digits": _noted(names.WEIGHT_ANNOTATION, _DIGITS),
    "threads below 0": _noted(names.THREADS_ANNOTATION, "-3"),
    "partitions of 200 kB": _noted(names.PARTITIONS_ANNOTATION, _LONG),
    "a topology of brackets": _noted(names.TOPOLOGY_ANNOTATION, _DEEP),
    "a cordon by nobody": _noted(names.CORDON_ANNOTATION, "{"),
    "a name in Slurm that is a list": {
        "metadata": {"labels": {names.SLURM_NODE_NAME_LABEL: "a-b..c"}}
    },
}
"""A merge patch of a node that is to be registered, by what is odd about it."""


def count() -> int:
    """Return how many there are."""
    return len(RUNNING_PODS) + len(NEW_PODS) + len(comments("")) + len(NODES)


def put(sandbox: Sandbox, namespace: str) -> Sequence[str]:
    """Put all of them into both systems; return those that were refused, with the reason.

    namespace: of a bridged tenant; exists.
    """
    path = f"/api/v1/namespaces/{namespace}/pods"
    refused: list[str] = []

    def tried(what: str, do: Callable[[], object]) -> None:
        try:
            do()
        except (ApiError, httpx.HTTPStatusError) as error:
            refused.append(f"{what}: {str(error)[:200]}")

    with Api(sandbox.user_kubeconfig("mallory", *_BREAK_GLASS)) as mallory:
        for number, (what, patch) in enumerate(RUNNING_PODS.items()):
            sandbox.admin.create(path, _pod(f"runs-{number}"))
            _until(partial(_has_node, sandbox, f"{path}/runs-{number}"))
            tried(what, partial(mallory.patch, f"{path}/runs-{number}", patch))
        for number, (what, more) in enumerate(NEW_PODS.items()):
            tried(what, partial(mallory.create, path, _pod(f"new-{number}", more)))
    for what, comment in comments(_cluster(sandbox)).items():
        tried(what, partial(_submit, sandbox, comment))
    for number, (what, patch) in enumerate(NODES.items()):
        tried(what, partial(_register, sandbox, f"odd-{number}", patch))
    return refused


def _pod(name: str, more: Manifest | None = None) -> Manifest:
    container = {"name": "main", "image": "example.test/image"}
    pod: Manifest = {
        "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    for part, fields in (more or {}).items():
        pod[part] |= fields
    pod["spec"]["containers"] = [container | each for each in pod["spec"]["containers"]]
    return pod


def _has_node(sandbox: Sandbox, path: str) -> bool:
    return bool(sandbox.admin.get(path)["spec"].get("nodeName"))


def _until(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > end_s:
            raise SandboxError(f"not so after {_PATIENCE_S:.0f} s: {condition}")
        time.sleep(_POLL_S)


def _cluster(sandbox: Sandbox) -> str:
    """Return our cluster's id, which the programs take from this namespace."""
    found = sandbox.admin.get("/api/v1/namespaces/kube-system")
    return str(found["metadata"]["uid"])


def _submit(sandbox: Sandbox, comment: str) -> None:
    """Submit a held job as a Slurm operator, who can write an `admin_comment`."""
    job = {
        "flags": ["EXTERNAL_JOB"],
        "name": "odd",
        "current_working_directory": "/",
        "environment": ["PATH=/usr/bin"],
        "user_id": nss.JOB_USER.name,
        "group_id": nss.JOB_USER.name,
        "account": nss.JOB_USER.name,
        "memory_per_node": {"set": True, "infinite": False, "number": 64},
        "hold": True,
        "admin_comment": comment,
    }
    httpx.post(
        f"{sandbox.slurmrestd_url}/slurm/{API}/job/submit",
        json={"job": job},
        headers=credentials(sandbox.instance),
        trust_env=False,
    ).raise_for_status()


def _register(sandbox: Sandbox, name: str, patch: Manifest) -> None:
    """Create a node like one of the sandbox's, with what is odd about it from the start."""
    like = next(
        node
        for node in sandbox.admin.get("/api/v1/nodes")["items"]
        if names.EXTERNAL_NODE_LABEL in node["metadata"]["labels"]
    )
    odd = patch["metadata"]
    metadata = {
        "name": name,
        "labels": {
            **like["metadata"]["labels"],
            "kubernetes.io/hostname": name,
            **odd.get("labels", {}),
        },
        "annotations": {**like["metadata"]["annotations"], **odd.get("annotations", {})},
    }
    sandbox.admin.create("/api/v1/nodes", {"metadata": metadata, "status": like["status"]})
