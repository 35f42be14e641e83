"""A real API server serves the six kinds by the definitions that are made from their types."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest

from sandbox.api import ApiError
from sandbox.client import Sandbox
from slurmoperator.nodesets import worker_bodies
from slurmoperator.nodesets.plan.planning import NewWorker
from slurmoperator.objects.definitions import definitions
from slurmoperator.objects.kinds import KINDS
from slurmoperator.objects.names import LONGEST
from slurmoperator.rendering.node_sets.worker import worker_pod
from tests.servers import wait_until
from tests.slurmoperator.examples import BY_NAME, SPECS, Manifest, manifest, path
from tests.slurmoperator.rendering.given import MADE_FOR, SITE, given, rendered

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STRICT = {"dryRun": "All", "fieldValidation": "Strict"}


@pytest.fixture(scope="module")
def served(control_plane: Sandbox) -> Iterator[Sandbox]:
    """The API server, with the six kinds."""
    admin = control_plane.admin
    names = [each["metadata"]["name"] for each in definitions()]
    for definition in definitions():
        admin.create(DEFINITIONS, definition)

    def are_served() -> bool:
        return all(
            any(
                c["type"] == "Established" and c["status"] == "True"
                for c in admin.get(f"{DEFINITIONS}/{name}")["status"].get("conditions") or ()
            )
            for name in names
        )

    wait_until(are_served, 30, sandbox=control_plane)
    yield control_plane
    for name in names:
        admin.delete(f"{DEFINITIONS}/{name}")


def lost(sent: Any, stored: Any, at: str = "spec") -> Iterator[str]:
    """Where what was stored lacks or changes what was sent."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        for key, value in sent.items():
            if key not in stored:
                yield f"{at}.{key}"
            else:
                yield from lost(value, stored[key], f"{at}.{key}")
    elif sent != stored:
        yield f"{at}: {sent!r} became {stored!r}"


@pytest.mark.parametrize("kind", SPECS)
def test_what_a_chart_writes_is_stored_as_it_is_and_read_by_the_types(
    served: Sandbox, namespace: str, kind: str
) -> None:
    body = manifest(kind)
    body["metadata"]["namespace"] = namespace
    where = path(BY_NAME[kind], namespace)
    stored = served.admin.request("POST", where, body, params={"fieldValidation": "Strict"})

    assert [] == list(lost(body["spec"], stored["spec"]))
    read = msgspec.json.decode(json.dumps(stored).encode(), type=BY_NAME[kind].object_type)
    assert stored["metadata"]["uid"] == read.metadata.uid  # type: ignore[attr-defined]
    changed = served.admin.patch(f"{where}/site", {"spec": {"template": {"spec": {"a": 1}}}})
    assert kind == "Token" or changed["spec"]["template"]["spec"]["a"] == 1


@pytest.mark.parametrize(
    ("kind", "changes", "said"),
    [
        ("Controller", {"clusterName": "a b"}, "spec.clusterName"),
        ("Controller", {"clusterName": "c" * 41}, "spec.clusterName: Too long"),
        ("Controller", {"slurmKeyRef": ...}, "spec.slurmKeyRef: Required"),
        ("Controller", {"slurmKeyRef": {"name": "a"}}, "spec.slurmKeyRef.key: Required"),
        ("Controller", {"jwtKeyRef": ...}, "spec.jwtKeyRef: Required"),
        ("Controller", {"external": True}, "spec.externalConfig: Required"),
        (
            "Controller",
            {"external": True, "externalConfig": {"host": "a", "port": 70_000}},
            "spec.externalConfig.port",
        ),
        ("Controller", {"ha": {"enabled": True}}, "spec.persistence: Required"),
        ("Controller", {"ha": {"enabled": True, "backups": 0}}, "spec.ha.backups"),
        ("Controller", {"accountingRef": {"name": ""}}, "spec.accountingRef.name"),
        ("Controller", {"configFileRefs": [{}]}, "spec.configFileRefs[0].name: Required"),
        ("Controller", {"extraConf": 7}, "spec.extraConf"),
        ("Controller", {"extraConf": "x" * 70_000}, "spec.extraConf: Too long"),
        ("Controller", {"extraConfig": "x"}, 'unknown field "spec.extraConfig"'),
        (
            "Controller",
            {"metrics": {"serviceMonitor": {"interval": "soon"}}},
            "spec.metrics.serviceMonitor.interval",
        ),
        ("Controller", {"service": {"port": 0}}, "spec.service.port"),
        ("NodeSet", {"controllerRef": ...}, "spec.controllerRef: Required"),
        ("NodeSet", {"controllerRef": {"name": ""}}, "spec.controllerRef.name"),
        ("NodeSet", {"replicas": -1}, "spec.replicas"),
        ("NodeSet", {"scalingMode": "Deployment"}, "spec.scalingMode: Unsupported"),
        ("NodeSet", {"extraConf": "Gres gpu"}, "spec.extraConf"),
        (
            "NodeSet",
            {"partition": {"enabled": True, "config": "a\nb"}},
            "spec.partition.config",
        ),
        ("NodeSet", {"partition": {}}, "spec.partition.enabled: Required"),
        ("NodeSet", {"ssh": {"enabled": True}}, "spec.ssh: Required"),
        (
            "NodeSet",
            {"template": {"spec": {"hostname": "Gpu_"}}},
            "spec.template.spec.hostname",
        ),
        (
            "NodeSet",
            {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}},
            "spec.updateStrategy.rollingUpdate.maxUnavailable",
        ),
        (
            "NodeSet",
            {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "0%"}}},
            "percentage above 0",
        ),
        (
            "NodeSet",
            {"updateStrategy": {"type": "ScheduledUpdate", "scheduledUpdate": {}}},
            "spec.updateStrategy.scheduledUpdate: Required",
        ),
        (
            "NodeSet",
            {
                "updateStrategy": {
                    "type": "ScheduledUpdate",
                    "scheduledUpdate": {"startTime": "2026-01-01T00:00:00Z", "duration": "30s"},
                }
            },
            "spec.updateStrategy.scheduledUpdate.duration",
        ),
        ("NodeSet", {"ordinalPadding": 11}, "spec.ordinalPadding"),
        (
            "NodeSet",
            {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Keep"}},
            "spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported",
        ),
        ("NodeSet", {"pruneSlurmNodeRecords": "Always"}, "spec.pruneSlurmNodeRecords"),
        ("LoginSet", {"sssdConfRef": ...}, "spec.sssdConfRef: Required"),
        ("LoginSet", {"sssdConfRef": {"name": "", "key": "a"}}, "spec.sssdConfRef.name"),
        ("LoginSet", {"replicas": "two"}, "spec.replicas"),
        ("RestApi", {"controllerRef": {}}, "spec.controllerRef.name: Required"),
        ("RestApi", {"replicas": 70_000}, "spec.replicas"),
        ("Accounting", {"storageConfig": ...}, "spec.storageConfig: Required"),
        ("Accounting", {"storageConfig": {"host": "db"}}, "spec.storageConfig.passwordKeyRef"),
        ("Accounting", {"external": True}, "spec.externalConfig: Required"),
        ("Token", {"username": ""}, "spec.username"),
        ("Token", {"username": "a b"}, "spec.username"),
        ("Token", {"jwtKeyRef": ...}, "spec.jwtKeyRef: Required"),
        ("Token", {"lifetime": "an hour"}, "spec.lifetime"),
        ("Token", {"lifetime": "1s"}, "spec.lifetime"),
    ],
)
def test_each_wrong_field_is_refused_with_its_path(
    served: Sandbox, namespace: str, kind: str, changes: Mapping[str, Any], said: str
) -> None:
    body = manifest(kind, **changes)
    body["metadata"]["namespace"] = namespace
    with pytest.raises(ApiError) as refused:
        served.admin.request("POST", path(BY_NAME[kind], namespace), body, params=STRICT)

    assert said in refused.value.message


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.kind))
def test_an_object_without_a_spec_is_refused(served: Sandbox, namespace: str, kind: Any) -> None:
    body = manifest(kind.kind)
    body["metadata"]["namespace"] = namespace
    del body["spec"]
    with pytest.raises(ApiError, match="spec: Required"):
        served.admin.request("POST", path(kind, namespace), body, params=STRICT)


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("Controller", {"clusterName": "other"}, "spec.clusterName"),
        ("Controller", {"clusterName": None}, "spec.clusterName"),
        ("Controller", {"slurmKeyRef": {"name": "other"}}, "spec.slurmKeyRef"),
        ("Controller", {"jwtKeyRef": {"name": "other"}}, "spec.jwtKeyRef"),
        ("Controller", {"persistence": {"enabled": False}}, "without its state"),
        ("Controller", {"persistence": {"existingClaim": "other"}}, "without its state"),
        ("NodeSet", {"controllerRef": {"name": "other"}}, "spec.controllerRef.name"),
        ("NodeSet", {"volumeClaimTemplates": [{}]}, "spec.volumeClaimTemplates"),
        ("LoginSet", {"controllerRef": {"name": "other"}}, "spec.controllerRef.name"),
        ("RestApi", {"controllerRef": {"name": "other"}}, "spec.controllerRef.name"),
        ("Accounting", {"jwtKeyRef": {"name": "other"}}, "spec.jwtKeyRef"),
        ("Token", {"jwtKeyRef": {"name": "other"}}, "spec.jwtKeyRef"),
    ],
)
def test_what_a_running_cluster_stands_on_does_not_change(
    served: Sandbox, namespace: str, kind: str, change: Manifest, said: str
) -> None:
    body = manifest(kind)
    body["metadata"]["namespace"] = namespace
    served.admin.create(path(BY_NAME[kind], namespace), body)
    with pytest.raises(ApiError) as refused:
        served.admin.patch(path(BY_NAME[kind], namespace, "site"), {"spec": change})

    assert said in refused.value.message


@pytest.mark.parametrize(("kind", "longest"), LONGEST.items())
def test_a_name_that_nothing_can_be_called_after_is_refused(
    served: Sandbox, namespace: str, kind: str, longest: int
) -> None:
    where = path(BY_NAME[kind], namespace)
    for name in ("a" * (longest + 1), "a.b", "1a"):
        body = manifest(kind, name)
        body["metadata"]["namespace"] = namespace
        with pytest.raises(ApiError, match=f"expected a name of at most {longest}"):
            served.admin.request("POST", where, body, params=STRICT)
    body = manifest(kind, "a" * longest)
    body["metadata"]["namespace"] = namespace
    served.admin.request("POST", where, body, params=STRICT)


CONTROLLER_REF = {"controllerRef": {"name": "site"}}
KEYS = {
    "slurmKeyRef": {"name": "site-auth-slurm", "key": "slurm.key"},
    "jwtKeyRef": {"name": "site-auth-jwt", "key": "jwt.key"},
}
LEAST: Mapping[str, Manifest] = {
    "Controller": KEYS,
    "Accounting": {
        **KEYS,
        "storageConfig": {
            "host": "database",
            "passwordKeyRef": {"name": "database", "key": "password"},
        },
    },
    "RestApi": CONTROLLER_REF,
    "NodeSet": CONTROLLER_REF,
    "LoginSet": {**CONTROLLER_REF, "sssdConfRef": {"name": "sssd", "key": "sssd.conf"}},
    "Token": {"username": "alice", "jwtKeyRef": {"name": "site-auth-jwt", "key": "jwt.key"}},
}
"""What must be said: a rule may not depend on a field that users leave out."""


@pytest.mark.parametrize("kind", BY_NAME)
def test_the_least_that_an_object_can_say_is_accepted(
    served: Sandbox, namespace: str, kind: str
) -> None:
    body = {**manifest(kind), "spec": LEAST[kind]}
    body["metadata"]["namespace"] = namespace
    served.admin.request("POST", path(BY_NAME[kind], namespace), body, params=STRICT)


NO_PREFIX = {"template": ...}
PREFIX_OF_58 = {"template": {"spec": {"hostname": "b" * 58}}}


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("a" * 57, NO_PREFIX),
        ("a" * 57, {**NO_PREFIX, "ordinalPadding": 5}),
        ("a.b", PREFIX_OF_58),
        ("a" * 63, {**PREFIX_OF_58, "ordinalPadding": 5}),
    ],
)
def test_a_node_set_whose_workers_just_have_host_names_is_accepted(
    served: Sandbox, namespace: str, name: str, changes: Mapping[str, Any]
) -> None:
    body = manifest("NodeSet", name, **changes)
    body["metadata"]["namespace"] = namespace
    served.admin.request("POST", path(BY_NAME["NodeSet"], namespace), body, params=STRICT)


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("a" * 58, NO_PREFIX, "expected a shorter name"),
        ("a" * 57, {**NO_PREFIX, "ordinalPadding": 6}, "expected a shorter name"),
        ("a", {**PREFIX_OF_58, "ordinalPadding": 6}, "expected a shorter name"),
        ("a" * 64, PREFIX_OF_58, "expected a name of at most 63"),
        ("a.b", NO_PREFIX, "without dots"),
    ],
)
def test_a_node_set_whose_last_worker_could_have_no_host_name_is_refused(
    served: Sandbox, namespace: str, name: str, changes: Mapping[str, Any], said: str
) -> None:
    body = manifest("NodeSet", name, **changes)
    body["metadata"]["namespace"] = namespace
    with pytest.raises(ApiError, match=said):
        served.admin.request("POST", path(BY_NAME["NodeSet"], namespace), body, params=STRICT)


@pytest.mark.parametrize("kind", MADE_FOR)
@pytest.mark.parametrize("longest", [False, True], ids=["site", "longest"])
def test_an_api_server_accepts_all_that_is_made_for_an_object(
    control_plane: Sandbox, namespace: str, kind: str, longest: bool
) -> None:
    name = "a" * LONGEST.get(kind, 58) if longest else "site"
    for each in rendered(given(kind, name, namespace=namespace)):
        accepted(control_plane, each)


def test_an_api_server_accepts_the_pod_of_a_worker(control_plane: Sandbox, namespace: str) -> None:
    node_set, controller = (given(kind, namespace=namespace) for kind in ("NodeSet", "Controller"))
    pod = worker_pod(node_set, 7, controller, SITE)
    accepted(control_plane, worker_bodies.pod_body(node_set, NewWorker(key=7), pod, digest="1"))


def accepted(sandbox: Sandbox, body: Mapping[str, Any]) -> None:
    """Apply it as a server-side dry run; nothing may be lost on the way."""
    group = "api" if "/" not in body["apiVersion"] else "apis"
    meta = body["metadata"]
    plural = f"{body['kind'].lower()}s"
    where = f"/{group}/{body['apiVersion']}/namespaces/{meta['namespace']}/{plural}/{meta['name']}"
    answer = sandbox.admin.request(
        "PATCH",
        where,
        body,
        content_type="application/apply-patch+yaml",
        params={**STRICT, "fieldManager": "slurm-operator", "force": "true"},
    )

    assert [] == list(forgotten(dict(body), answer, body["kind"]))


def forgotten(sent: Any, answered: Any, at: str) -> Iterator[str]:
    """Like `lost`, but the API server may add defaults to what is in lists, and leave out what is empty."""
    if isinstance(sent, list) and isinstance(answered, list) and len(sent) <= len(answered):
        for index, (one, other) in enumerate(zip(sent, answered, strict=False)):
            yield from forgotten(one, other, f"{at}[{index}]")
    elif isinstance(sent, dict) and isinstance(answered, dict):
        for key, value in sent.items():
            if value not in ("", [], {}):
                yield from forgotten(value, answered.get(key), f"{at}.{key}")
    elif sent != answered:
        yield f"{at}: {sent!r} became {answered!r}"


def test_a_key_keeps_its_identity_under_its_newer_name(served: Sandbox, namespace: str) -> None:
    body = manifest("Controller", jwtKeyRef=..., jwtHs256KeyRef=SPECS["Controller"]["jwtKeyRef"])
    body["metadata"]["namespace"] = namespace
    where = path(BY_NAME["Controller"], namespace)
    served.admin.create(where, body)
    renamed = {"jwtHs256KeyRef": None, "jwtKeyRef": body["spec"]["jwtHs256KeyRef"]}
    served.admin.patch(f"{where}/site", {"spec": renamed})


def test_kubectl_scales_workers(served: Sandbox, namespace: str) -> None:
    body = manifest("NodeSet")
    body["metadata"]["namespace"] = namespace
    where = path(BY_NAME["NodeSet"], namespace)
    served.admin.create(where, body)
    served.kubectl("scale", "nodeset/site", "--replicas=5", "--namespace", namespace)

    assert 5 == served.admin.get(f"{where}/site")["spec"]["replicas"]
