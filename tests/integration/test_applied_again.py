"""GitOps: the manifest of a pod is applied again while it runs, and there is nothing to change.

What we write into a placed pod lies beside what its user wrote. Where it cannot, as the API server
replaces the whole field, the webhook leaves ours there.
"""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from slurmruntime.values import names
from tests.integration.worlds import Worlds, container, played

_LINUX = {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}
_BY_NAME = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
_WRITTEN: Mapping[str, Mapping[str, Any]] = {
    "nothing": {},
    "selector": {"nodeSelector": {"kubernetes.io/os": "linux"}},
    "scheduler": {"schedulerName": names.SCHEDULER_NAME},
    "default-scheduler": {"schedulerName": names.DEFAULT_SCHEDULER_NAME},
    "tolerations": {"tolerations": [{"key": "example.com/dear", "operator": "Exists"}]},
    "tolerations-and-ours": {
        "tolerations": [
            {"key": "example.com/dear", "operator": "Exists"},
            {"key": names.MANAGED_NODE_TAINT, "operator": "Exists"},
        ]
    },
    "empty": {"affinity": {}, "tolerations": [], "nodeSelector": {}, "schedulerName": ""},
    "required": {"affinity": {"nodeAffinity": {}}},
    "alternatives": {"affinity": {"nodeAffinity": {}}},
    "waiting": {
        "schedulerName": names.DEFAULT_SCHEDULER_NAME,
        "tolerations": [{"key": "example.com/dear", "operator": "Exists"}],
    },
    "both": {"affinity": {"nodeAffinity": {}}, "nodeSelector": {"kubernetes.io/os": "linux"}},
    "preferred": {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": {"matchExpressions": [_LINUX]}}
                ]
            }
        }
    },
}
_NOTES = {"waiting": {f"{names.REQUEST_PREFIX}hold": "true"}}
_TERMS = {
    "required": [{"matchExpressions": [_LINUX]}],
    "alternatives": [{"matchExpressions": [_LINUX]}, {"matchFields": [_BY_NAME]}],
    "both": [{"matchExpressions": [_LINUX]}],
}


def manifest(name: str) -> dict[str, Any]:
    spec = json.loads(json.dumps(_WRITTEN[name]))
    if terms := _TERMS.get(name):
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        spec["affinity"]["nodeAffinity"][required] = {"nodeSelectorTerms": terms}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"app": name},
            "annotations": {
                "example.com/note": "of its user",
                **_NOTES.get(name, {}),
                **played(seconds=600),
            },
        },
        "spec": {"containers": [container()], **spec},
    }


@pytest.mark.parametrize("how", [(), ("--server-side",)], ids=["client-side", "server-side"])
def test_an_unchanged_manifest_is_applied_again(worlds: Worlds, how: tuple[str, ...]) -> None:
    pods = [manifest(name) for name in _WRITTEN]
    written = json.dumps({"apiVersion": "v1", "kind": "List", "items": pods})

    def kubectl(verb: str) -> str:
        where = ("--namespace", worlds.namespace, verb, *how, "--filename=-")
        return worlds.sandbox.kubectl(*where, stdin=written)

    kubectl("apply")
    worlds.await_pod("waiting", lambda pod: names.JOB_ID_LABEL in pod["metadata"]["labels"])
    for name in _WRITTEN.keys() - {"waiting"}:
        pod = worlds.await_phase(name, "Running")
        assert (manifest(name)["spec"].get("nodeSelector") or {}) == pod["spec"].get(
            "nodeSelector", {}
        )
        if terms := _TERMS.get(name):
            (of_nodes,) = pod["spec"]["affinity"].values()
            assert [terms] == [each["nodeSelectorTerms"] for each in of_nodes.values()]

    before = stored(worlds)
    kubectl("diff")  # fails if there is any
    assert len(_WRITTEN) == len(kubectl("apply").splitlines())
    assert before == stored(worlds)


def stored(worlds: Worlds) -> dict[str, Any]:
    """All but who wrote which field, and when."""
    pods = worlds.sandbox.admin.get(f"{worlds.path}/pods")["items"]
    kept = ("labels", "annotations", "finalizers")
    return {
        pod["metadata"]["name"]: ([pod["metadata"].get(key) for key in kept], pod["spec"])
        for pod in pods
    }
