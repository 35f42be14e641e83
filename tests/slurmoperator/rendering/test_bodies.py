"""What is made for each object: complete, the same each time, and the user's wishes in it."""

import base64
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from slurmoperator.configuration.rendering import ConfigurationSet
from slurmoperator.rendering.accounting import accounting_bodies
from slurmoperator.rendering.body import digest
from slurmoperator.rendering.controller import controller_bodies
from slurmoperator.rendering.loginset import login_set_bodies
from slurmoperator.rendering.restapi import restapi_bodies
from slurmoperator.rendering.trying import WRITE_FILE
from slurmruntime.values.faults import Refusal
from tests.slurmoperator.rendering.given import (
    FILES,
    MADE_FOR,
    SITE,
    given,
    name_of,
    named,
    one,
    pod,
    rendered,
)

WITH_PODS = ("Controller", "Accounting", "RestApi", "LoginSet")


def controller_pod(**changes: Any) -> Any:
    return pod(rendered(given("Controller", **changes)))


def digest_of(template: Any) -> str:
    return str(template["metadata"]["annotations"]["slurm-bridge.dev/restarted-for"])


@pytest.mark.parametrize("kind", MADE_FOR)
def test_all_belong_to_their_object_and_are_the_same_each_time(kind: str) -> None:
    found = given(kind)
    bodies = rendered(found)

    assert bodies
    assert digest(bodies) == digest(rendered(given(kind)))
    assert len({(body["kind"], name_of(body)) for body in bodies}) == len(bodies)
    for body in bodies:
        meta = body["metadata"]
        (owner,) = meta["ownerReferences"]
        assert (kind, "site", f"uid-of-{kind}", True, False) == (
            owner["kind"],
            owner["name"],
            owner["uid"],
            owner["controller"],
            owner["blockOwnerDeletion"],
        )
        assert "site" == meta["labels"]["app.kubernetes.io/instance"]
        assert "slurm-bridge" == meta["labels"]["app.kubernetes.io/managed-by"]


@pytest.mark.parametrize("kind", MADE_FOR)
def test_labels_and_annotations_of_an_object_stay_with_it(kind: str) -> None:
    """Or any change of them would restart daemons."""
    plain = given(kind)
    more = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "argocd/tracking-id": "a:b"}
    metadata = msgspec.structs.replace(plain.metadata, annotations=more, labels={"team": "a"})
    marked = msgspec.structs.replace(plain, metadata=metadata)

    assert rendered(plain) == rendered(marked)


@pytest.mark.parametrize("kind", WITH_PODS)
def test_selectors_find_the_pods_and_volumes_are_there(kind: str) -> None:
    bodies = rendered(given(kind))
    (runs,) = [body["spec"] for body in bodies if body["apiVersion"] == "apps/v1"]
    labels, spec = runs["template"]["metadata"]["labels"], runs["template"]["spec"]
    services = [body["spec"] for body in bodies if body["kind"] == "Service"]
    ports = {each["name"] for each in spec["containers"][0]["ports"]}
    claims = {
        volume_claim_template["metadata"]["name"]
        for volume_claim_template in runs.get("volumeClaimTemplates", ())
    }
    volumes = {volume["name"] for volume in spec["volumes"]} | claims

    assert runs["selector"]["matchLabels"].items() <= labels.items()
    reaching = [service for service in services if service["selector"].items() <= labels.items()]
    assert reaching
    assert {port["targetPort"] for each in reaching for port in each["ports"]} <= ports
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        assert {
            volume_mount["name"] for volume_mount in container.get("volumeMounts", ())
        } <= volumes
        assert container["image"]


@pytest.mark.parametrize("kind", ["Controller", "RestApi"])
def test_a_daemon_that_answers_a_moment_later_is_not_missed_for_long(kind: str) -> None:
    (daemon, *_) = pod(rendered(given(kind)))["spec"]["containers"]

    assert (60, 1) == (
        daemon["startupProbe"]["failureThreshold"],
        daemon["startupProbe"]["periodSeconds"],
    )


def test_clients_find_slurmctld_whoever_runs_and_whatever_port_the_service_has_besides() -> None:
    service = one(rendered(given("Controller")), "Service", "site-controller")["spec"]
    assert {"app.kubernetes.io/name": "slurmctld", "app.kubernetes.io/instance": "site"} == service[
        "selector"
    ]

    asked = {"port": 7000, "nodePort": 30_007, "spec": {"type": "LoadBalancer"}}
    spec = one(rendered(given("Controller", service=asked)), "Service", "site-controller")["spec"]
    assert [(7000, 30_007), (6817, None)] == [
        (port["port"], port.get("nodePort")) for port in spec["ports"]
    ]
    assert "LoadBalancer" == spec["type"]


def test_a_service_that_selects_other_pods_is_refused() -> None:
    wrong = {"spec": {"selector": {"a": "b"}}}
    with pytest.raises(Refusal) as refused:
        controller_bodies(given("Controller", service=wrong), FILES, SITE)

    assert ["spec.service.spec.selector"] == [fault.path for fault in refused.value.faults]


@pytest.mark.parametrize("name", ["site-config", "site-config-wanted"])
def test_slurms_files_are_in_a_config_map_under_their_digest(name: str) -> None:
    body = one(rendered(given("Controller")), "ConfigMap", name)

    written = {WRITE_FILE: FILES.write} if name == "site-config-wanted" else {}
    assert {**FILES.files, **written} == body["data"]
    assert FILES.digest == body["metadata"]["annotations"]["slurm-bridge.dev/configuration"]


@pytest.mark.parametrize(
    ("line", "restarts"),
    [("SchedulerParameters=bf_interval=9", False), ("SlurmdPort=6900", True)],
)
def test_only_what_no_reconfigure_can_change_restarts_slurmctld(line: str, restarts: bool) -> None:
    conf = "ClusterName=site\nSlurmdPort=6818\n"
    changed = conf.replace("SlurmdPort=6818", line) if restarts else f"{conf}{line}\n"
    controller = given("Controller")
    templates = []
    for text in (conf, changed):
        files = ConfigurationSet(files={"slurm.conf": text})
        templates.append(pod(controller_bodies(controller, files, SITE)))

    assert restarts == (templates[0] != templates[1])
    assert restarts == (digest_of(templates[0]) != digest_of(templates[1]))


def test_another_key_restarts_slurmctld() -> None:
    controller = given("Controller")
    before, after = (
        pod(controller_bodies(controller, FILES, SITE, key_step=step)) for step in (0, 1)
    )

    assert before != after


@pytest.mark.parametrize(
    ("persistence", "volume"),
    [
        ({"enabled": False}, {"name": "statesave", "emptyDir": {}}),
        (
            {"enabled": True, "existingClaim": "old"},
            {"name": "statesave", "persistentVolumeClaim": {"claimName": "old"}},
        ),
    ],
)
def test_the_state_is_where_the_object_says(persistence: Any, volume: Any) -> None:
    assert volume == named(controller_pod(persistence=persistence)["spec"]["volumes"], "statesave")


@pytest.mark.parametrize("persistence", [..., {"enabled": True, "accessModes": None}, {}])
def test_by_default_the_state_has_a_claim_that_nothing_deletes(persistence: Any) -> None:
    if isinstance(persistence, dict):
        persistence = {key: value for key, value in persistence.items() if value is not None}
    spec = one(rendered(given("Controller", persistence=persistence)), "StatefulSet")["spec"]

    (claim,) = spec["volumeClaimTemplates"]
    assert ["ReadWriteOnce"] == claim["spec"]["accessModes"]
    assert {"whenDeleted": "Retain", "whenScaled": "Retain"} == spec[
        "persistentVolumeClaimRetentionPolicy"
    ]


def test_a_slurmctld_elsewhere_has_only_its_files_and_the_workers_names() -> None:
    external = given("Controller", external=True, externalConfig={"host": "a", "port": 1})

    assert [("ConfigMap", "site-config"), ("Service", "slurm-workers-site")] == [
        (body["kind"], name_of(body)) for body in rendered(external)
    ]


def test_standby_slurmctlds_are_apart_and_do_not_hold_an_update_up() -> None:
    spec = controller_pod(
        ha={"enabled": True, "backups": 1}, persistence={"enabled": True, "existingClaim": "rwx"}
    )["spec"]

    assert "podAntiAffinity" in spec["affinity"]
    assert "/livez" == spec["containers"][0]["readinessProbe"]["httpGet"]["path"]


def test_a_monitor_reads_each_page_once() -> None:
    asked = {
        "enabled": True,
        "interval": "30s",
        "labels": {"release": "prometheus"},
        "endpoints": [{"path": "/metrics/jobs", "interval": "5s", "scrapeTimeout": "3s"}],
    }
    controller = given("Controller", metrics={"enabled": True, "serviceMonitor": asked})
    bodies = rendered(controller)
    monitor = one(bodies, "ServiceMonitor")

    assert bodies[-1] is monitor, "what may not be served comes last"
    assert "prometheus" == monitor["metadata"]["labels"]["release"]
    (page,) = monitor["spec"]["endpoints"]
    assert ("/metrics/jobs", "5s", "3s") == (page["path"], page["interval"], page["scrapeTimeout"])
    (kept,) = page["relabelings"]
    service = one(bodies, "Service", kept["regex"])
    assert page["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert (
        monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    )


def test_a_monitor_reads_all_pages_unless_it_is_told_which() -> None:
    asked = {"enabled": True, "interval": "30s", "endpoints": None}
    bodies = rendered(given("Controller", metrics={"enabled": True, "serviceMonitor": asked}))

    pages = one(bodies, "ServiceMonitor")["spec"]["endpoints"]
    assert ["jobs", "nodes", "partitions", "scheduler"] == [
        page["path"].removeprefix("/metrics/") for page in pages
    ]
    assert {"30s"} == {page["interval"] for page in pages}
    assert "ServiceMonitor" not in {body["kind"] for body in rendered(given("Controller"))}


def test_slurmdbd_has_its_file_in_a_secret_and_restarts_for_another() -> None:
    bodies = rendered(given("Accounting"))
    conf = base64.b64decode(
        one(bodies, "Secret", "site-accounting-wanted")["data"]["slurmdbd.conf"]
    ).decode()

    assert "StoragePass=p\\#w\n" in conf
    other = rendered(given("Accounting", extraConf="ArchiveEvents=no"))
    assert digest_of(pod(bodies)) != digest_of(pod(other))
    elsewhere = given("Accounting", external=True, externalConfig={"host": "a", "port": 1})
    assert () == rendered(elsewhere)


def test_slurmrestd_listens_after_all_its_options() -> None:
    bodies = rendered(given("RestApi", slurmrestd={"args": ["-v"]}))
    assert ["-v", "127.0.0.1:6821"] == pod(bodies)["spec"]["containers"][0]["args"]

    alone = given("Controller", accountingRef=...)
    bodies = rendered(given("RestApi"), controller=alone)
    assert ["-s", "openapi/slurmctld", "127.0.0.1:6821"] == pod(bodies)["spec"]["containers"][0][
        "args"
    ]

    own = rendered(given("RestApi", slurmrestd={"command": ["sleep"], "args": ["9"]}))
    assert ["9"] == pod(own)["spec"]["containers"][0]["args"]


def test_what_the_user_says_to_sshd_displaces_ours() -> None:
    bodies = rendered(
        given("LoginSet", extraSshdConfig="permitrootlogin no\nMatch User a\n  X11Forwarding yes")
    )
    lines = one(bodies, "ConfigMap")["data"]["sshd_config"].splitlines()

    assert "permitrootlogin no" == lines[0]
    assert ["Match User a", "  X11Forwarding yes"] == lines[-2:]
    assert {"PermitRootLogin prohibit-password", "X11Forwarding no"} <= set(lines[1:-2])


def test_no_protected_worker_may_be_evicted() -> None:
    budget = one(rendered(given("NodeSet")), "PodDisruptionBudget")["spec"]

    assert 2**31 - 1 == budget["minAvailable"]
    assert {
        "app.kubernetes.io/name": "slurmd",
        "app.kubernetes.io/instance": "site",
        "nodeset.slinky.slurm.net/pod-protect": "true",
    } == budget["selector"]["matchLabels"]
    unprotected = rendered(given("NodeSet", workloadDisruptionProtection=False))
    assert "PodDisruptionBudget" not in {body["kind"] for body in unprotected}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("Controller", "c" * 42),
        ("Accounting", "a.b"),
        ("RestApi", "1st"),
        ("RestApi", "r" * 56),
        ("LoginSet", "l" * 64),
        ("Controller", "a-"),
    ],
)
def test_a_name_that_nothing_can_be_called_after_is_refused(kind: str, name: str) -> None:
    found = given(kind, name)
    control = given("Controller")
    renders: dict[str, Callable[[], object]] = {
        "Controller": lambda: controller_bodies(found, FILES, SITE),
        "RestApi": lambda: restapi_bodies(found, control, FILES, SITE, presented=None),
        "LoginSet": lambda: login_set_bodies(found, control, SITE),
        "Accounting": lambda: accounting_bodies(found, "", SITE),
    }
    with pytest.raises(Refusal) as refused:
        renders[kind]()

    assert ["metadata.name"] == [fault.path for fault in refused.value.faults]


def test_all_that_is_wrong_is_said_at_once() -> None:
    wrong = given(
        "Controller",
        "c" * 42,
        slurmKeyRef=...,
        jwtKeyRef=...,
        service={"spec": {"selector": {"a": "b"}}},
    )
    with pytest.raises(Refusal) as refused:
        controller_bodies(wrong, FILES, SITE)

    assert [
        "metadata.name",
        "spec.service.spec.selector",
        "spec.slurmKeyRef",
        "spec.jwtKeyRef",
    ] == [fault.path for fault in refused.value.faults]
