"""Pods that the extender binds itself: no user gets the name for a pod that kube-scheduler must see to."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.domain.admission import binder
from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.chart.policed import EFFECTIVE_S, Cluster, pod, pods, policed, refusal
from tests.chart.rendering import Manifest, render
from tests.chart.volumes import VOLUMES
from tests.servers import wait_until

ON = {"config": {"placement": {"binder": "extender"}}}
OURS = names.binder(names.SCHEDULER_NAME)


@pytest.fixture(scope="module")
def cluster(control_plane: Sandbox, helm: Path) -> Iterator[Cluster]:
    with policed(control_plane, helm, values=ON) as cluster:
        body = pod(spec={"schedulerName": OURS})
        path = pods(cluster.bridged)
        wait_until(lambda: not refusal(cluster.user(), "POST", path, body), EFFECTIVE_S)
        yield cluster


def asking(**spec: Any) -> Manifest:
    """As if the webhook had been talked into it."""
    return pod(spec={"schedulerName": OURS, **spec})


@pytest.mark.attack(
    "name the scheduler of pods that the extender binds, for a pod that kube-scheduler must handle",
    "policy `bypass`, and the extender looks again",
)
@pytest.mark.parametrize("kind", sorted(VOLUMES))
def test_only_pods_with_plain_volumes_have_the_name(cluster: Cluster, kind: str) -> None:
    body = asking(volumes=[{"name": "v", kind: VOLUMES[kind]}])

    said = refusal(cluster.user(), "POST", pods(cluster.bridged), body)

    assert (kind in binder.PLAIN_VOLUMES) is not ("spec.schedulerName" in said), said


@pytest.mark.parametrize(
    ("spec", "may"),
    [
        pytest.param({}, True, id="plain"),
        pytest.param(
            {"resourceClaims": [{"name": "gpu", "resourceClaimName": "one"}]}, True, id="claim"
        ),
        pytest.param({"schedulerName": f"{OURS}-binder"}, False, id="the name once more"),
    ],
)
def test_nobody_else_has_the_name(cluster: Cluster, spec: Manifest, may: bool) -> None:
    """Whether a claim has its devices, the extender looks before it binds."""
    said = refusal(cluster.user(), "POST", pods(cluster.bridged), asking(**spec))

    assert may is not ("spec.schedulerName" in said), said


def test_kube_schedulers_name_stays_good_for_every_pod(cluster: Cluster) -> None:
    for volumes in ([], [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]):
        assert not refusal(
            cluster.user(), "POST", pods(cluster.bridged), pod(spec={"volumes": volumes})
        )


@pytest.mark.attack(
    "make pods of an unselected namespace ours by the name of those that the extender binds",
    "policy `elsewhere`",
)
def test_elsewhere_nobody_asks_for_the_binder(cluster: Cluster) -> None:
    body = pod(ours=False, spec={"schedulerName": OURS})
    for namespace in (cluster.other, "kube-system", cluster.ours):
        assert f"namespace {namespace} is not placed by Slurm" in refusal(
            cluster.admin, "POST", pods(namespace), body
        )


@pytest.mark.attack(
    "send a pod that the extender binds to a node of one's choice",
    "policies `keys`, `bypass` and `binding`",
)
def test_what_the_binder_goes_by_is_nobodys_to_write(cluster: Cluster) -> None:
    path, alice = pods(cluster.bridged), cluster.user()
    forged = {names.NODE_ANNOTATION: "node-0"}
    assert names.NODE_ANNOTATION in refusal(
        alice,
        "POST",
        path,
        {**asking(), "metadata": {**asking()["metadata"], "annotations": forged}},
    )
    name = cluster.create(pod("guarded", spec={"schedulerName": OURS}))
    there = pods(cluster.bridged, name)
    for change in (
        {"metadata": {"annotations": forged}},
        {"metadata": {"labels": {names.JOB_ID_LABEL: "1"}}},
        {"metadata": {"finalizers": None}},
        {"spec": {"schedulingGates": None}},
    ):
        assert refusal(alice, "PATCH", there, change)


def test_with_the_setting_off_nobody_has_the_name(helm: Path) -> None:
    """The policy is off as the webhook is: whoever writes the name meets a refusal."""
    (bypass,) = (
        m
        for m in render(helm).manifests
        if m["kind"] == "ValidatingAdmissionPolicy" and m["metadata"]["name"].endswith("-bypass")
    )
    allowed = [validation["expression"] for validation in bypass["spec"]["validations"]]

    assert f"object.spec.schedulerName == '{names.SCHEDULER_NAME}'" in allowed
    assert not any(OURS in each for each in allowed)
