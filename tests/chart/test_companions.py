"""Companions of SlurmJobs at the API server: who creates one makes it one, and nobody makes a pod of their own of it."""

import copy
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from slurmjobs.companions import pod as companion
from slurmruntime.values import names
from tests.chart.policed import RELEASE, Cluster, pods, policed, refusal
from tests.chart.rendering import Manifest
from tests.slurmjobs.companions.outputs import ALICE, collecting_job, job

RULES = [{"name": "people", "match": {"kinds": ["SlurmJob"]}, "user": "{user}"}]
SERVED = {"config": {"slurm_jobs": {"enabled": True}, "policy": {"rules": RULES}}}
ACCOUNT = "companions"


@pytest.fixture(scope="module")
def cluster(control_plane: Sandbox, helm: Path) -> Iterator[Cluster]:
    with policed(control_plane, helm, values=SERVED) as cluster:
        yield cluster


def made(namespace: str) -> Manifest:
    """What the product makes."""
    made = companion.manifest(job(), ALICE, "images.example.test/bridge:1")
    made["metadata"]["namespace"] = namespace
    return made


def collector(namespace: str, number: int) -> Manifest:
    """What the product makes to copy results."""
    found = collecting_job("model.bin")
    image = "images.example.test/bridge:1"
    made = companion.collector(found, ALICE, image, number=number, seconds=60)
    made["metadata"]["namespace"] = namespace
    return made


def test_a_companion_is_created_past_slurm(cluster: Cluster) -> None:
    for namespace in (cluster.bridged, cluster.other):
        path = pods(namespace)
        every = (made(namespace), *(collector(namespace, number) for number in (1, 2, 3)))
        for body in every:
            assert "" == refusal(cluster.program(ACCOUNT), "POST", path, body)


def test_the_controllers_may_act_as_the_account_and_as_nobody_else(cluster: Cluster) -> None:
    def acting_as(user: str) -> str:
        done = subprocess.run(
            (
                str(cluster.sandbox.instance.bin / "kubectl"),
                f"--kubeconfig={cluster.credentials('controllers')}",
                f"--as={user}",
                *("create", "--dry-run=server", "--validate=false", "--filename=-"),
            ),
            input=json.dumps(made(cluster.bridged)),
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stderr

    account = f"system:serviceaccount:{cluster.ours}:{RELEASE}"
    assert "" == acting_as(f"{account}-{ACCOUNT}")
    assert "cannot impersonate" in acting_as(f"{account}-extender")
    assert "cannot impersonate" in acting_as("alice")


@pytest.mark.attack(
    "create a pod that looks exactly like a SlurmJob's companion, to run past Slurm",
    "who creates it makes a companion: webhook and policies go by the account, policy `companions-kept` refuses the label to others",
)
@pytest.mark.parametrize("who", ["alice", "admin", "controllers", "extender"])
def test_no_user_makes_a_pod_pass_as_a_companion(cluster: Cluster, who: str) -> None:
    refused = refusal(cluster.known(who), "POST", pods(cluster.bridged), made(cluster.bridged))

    assert "forbidden" in refused


@pytest.mark.attack(
    "take a companion's look off but its label, in a namespace that Slurm does not place",
    "nobody but slurm-bridge creates a pod with that label, in any namespace",
)
def test_the_label_is_refused_to_users_everywhere(cluster: Cluster) -> None:
    refused = refusal(cluster.user(), "POST", pods(cluster.other), made(cluster.other))

    assert f"metadata.labels[{names.COMPANION_LABEL}]: leave it out" in refused


@pytest.fixture
def there(cluster: Cluster) -> Iterator[Manifest]:
    created: Manifest = cluster.program(ACCOUNT).create(
        pods(cluster.bridged), made(cluster.bridged)
    )
    yield created
    cluster.admin.delete(pods(cluster.bridged, created["metadata"]["name"]), gracePeriodSeconds=0)


CHANGES: dict[str, tuple[str, Any]] = {
    "its image": ("", {"spec": {"containers": [{"name": "stdout", "image": "evil"}]}}),
    "its label": ("", {"metadata": {"labels": {names.COMPANION_LABEL: None}}}),
    "what it follows": ("", {"metadata": {"annotations": {names.FOLLOWS_ANNOTATION: "9"}}}),
    "its end": ("", {"metadata": {"annotations": {names.ENDED_ANNOTATION: "0"}}}),
    "a debugger": (
        "ephemeralcontainers",
        {"spec": {"ephemeralContainers": [{"name": "d", "image": "evil"}]}},
    ),
}


@pytest.mark.attack(
    "make a companion one's own: another image, a debug container, another file's end",
    "policy `companions-kept` lets nobody change one; deleting it is free",
)
@pytest.mark.parametrize("change", CHANGES)
def test_nobody_makes_a_companion_their_own(cluster: Cluster, there: Manifest, change: str) -> None:
    subresource, patch = CHANGES[change]
    path = pods(cluster.bridged, there["metadata"]["name"], subresource)

    assert refusal(cluster.user(), "PATCH", path, patch, strategic=True)
    refused = refusal(cluster.admin, "PATCH", path, patch, strategic=True)
    assert "stays as slurm-bridge made it" in refused


def test_a_companion_is_told_of_the_end_and_can_be_labelled_and_deleted(
    cluster: Cluster, there: Manifest
) -> None:
    path = pods(cluster.bridged, there["metadata"]["name"])
    end = {"metadata": {"annotations": {names.ENDED_ANNOTATION: "3"}}}

    assert "" == refusal(cluster.program("controllers"), "PATCH", path, end)
    assert "" == refusal(cluster.user(), "PATCH", path, {"metadata": {"labels": {"mine": "yes"}}})
    assert "" == refusal(cluster.user(), "DELETE", path, None)


def _root(body: Manifest) -> None:
    body["spec"]["securityContext"] = {"runAsUser": 0}


def _root_container(body: Manifest) -> None:
    body["spec"]["containers"][0]["securityContext"]["runAsUser"] = 0


def _host_path(body: Manifest) -> None:
    body["spec"]["volumes"].append({"name": "host", "hostPath": {"path": "/"}})


def _host_network(body: Manifest) -> None:
    body["spec"]["hostNetwork"] = True


def _token(body: Manifest) -> None:
    body["spec"]["automountServiceAccountToken"] = True


def _nobodys(body: Manifest) -> None:
    del body["metadata"]["ownerReferences"]


def _groups(body: Manifest) -> None:
    body["spec"]["securityContext"]["supplementalGroups"] = [0]


def _group_of_files(body: Manifest) -> None:
    body["spec"]["securityContext"]["fsGroup"] = 0


def _host_port(body: Manifest) -> None:
    body["spec"]["containers"][0]["ports"] = [{"containerPort": 22, "hostPort": 22}]


def _unlimited(body: Manifest) -> None:
    body["spec"]["containers"][0]["resources"] = {}


def _on_slurms_nodes(body: Manifest) -> None:
    body["spec"]["tolerations"] = [{"operator": "Exists"}]


def _by_name(body: Manifest) -> None:
    body["spec"]["nodeName"] = "node-0"


def _for_something_else(body: Manifest) -> None:
    body["metadata"]["labels"][names.COMPANION_LABEL] = "collect"


def _another_name(body: Manifest) -> None:
    body["metadata"]["name"] = "train-collect-4"


def _first(body: Manifest) -> None:
    body["spec"]["initContainers"] = [copy.deepcopy(body["spec"]["containers"][0])]
    body["spec"]["initContainers"][0]["name"] = "first"


@pytest.mark.parametrize(
    "change",
    [
        *(_root, _root_container, _host_path, _host_network, _token, _nobodys, _unlimited),
        *(
            _on_slurms_nodes,
            _by_name,
            _first,
            _another_name,
            _for_something_else,
            _groups,
            _group_of_files,
            _host_port,
        ),
    ],
)
@pytest.mark.attack(
    "create any other pod with the account that makes companions",
    "policy `companions` bounds it: no root, no host, no token, a SlurmJob's own, not on Slurm's nodes",
)
def test_the_account_creates_nothing_else(
    cluster: Cluster, change: Callable[[Manifest], None]
) -> None:
    body = made(cluster.bridged)
    change(body)

    assert refusal(cluster.program(ACCOUNT), "POST", pods(cluster.bridged), body)


def _key_of_a_secret(body: Manifest) -> None:
    source = {"secretKeyRef": {"name": "theirs", "key": "token"}}
    body["spec"]["containers"][0]["env"] = [{"name": "STOLEN", "valueFrom": source}]


def _all_of_a_secret(body: Manifest) -> None:
    body["spec"]["containers"][0]["envFrom"] = [{"secretRef": {"name": "theirs"}}]


def _all_of_a_config_map(body: Manifest) -> None:
    body["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "theirs"}}]


@pytest.mark.attack(
    "with the account that makes companions, read any Secret of any namespace through a companion's environment",
    "policy `companions`: no environment from Secrets or ConfigMaps",
)
@pytest.mark.parametrize("change", [_key_of_a_secret, _all_of_a_secret, _all_of_a_config_map])
def test_no_companion_has_a_secret_in_its_environment(
    cluster: Cluster, change: Callable[[Manifest], None]
) -> None:
    for namespace in (cluster.bridged, cluster.other):
        body = made(namespace)
        change(body)

        refused = refusal(cluster.program(ACCOUNT), "POST", pods(namespace), body)
        assert "no environment from Secrets or ConfigMaps" in refused


def _critical(body: Manifest) -> None:
    body["spec"]["priorityClassName"] = "system-cluster-critical"


def _claiming(body: Manifest) -> None:
    body["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "theirs"}]


@pytest.mark.attack(
    "with the account that makes companions, run pods in kube-system, throw others out by a critical priority, or claim devices",
    "policy `companions`: not where Slurm never places pods, and neither critical nor with claims",
)
def test_no_companion_runs_beside_the_control_plane_or_at_the_cost_of_others(
    cluster: Cluster,
) -> None:
    account = cluster.program(ACCOUNT)
    for namespace in ("kube-system", cluster.ours):
        refused = refusal(account, "POST", pods(namespace), made(namespace))
        assert "where Slurm places pods" in refused
    for change in (_critical, _claiming):
        body = made(cluster.bridged)
        change(body)
        refused = refusal(account, "POST", pods(cluster.bridged), body)
        assert "displaces no other pod, and claims no devices" in refused


@pytest.mark.attack(
    "with the account that makes companions, create a pod that says it has lost a job of another user, to have that requested again",
    "policy `bypass`: who passes us by may not ask for us; elsewhere policy `elsewhere`",
)
def test_no_companion_looks_placed(cluster: Cluster) -> None:
    for namespace in (cluster.bridged, cluster.other):
        body = made(namespace)
        body["metadata"]["finalizers"] = [names.FINALIZER]
        body["metadata"]["annotations"] |= {names.WHEN_LOST_ANNOTATION: "restore"}
        body["spec"]["schedulerName"] = names.SCHEDULER_NAME

        assert "schedulerName" in refusal(cluster.program(ACCOUNT), "POST", pods(namespace), body)
