"""The API server hands pods to Slurm by itself (`admission.mutate: policy`), as the webhook would: a real one, nothing of ours runs."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.domain.admission import review as admission
from bridge.domain.request.rules import Policy
from bridge.domain.workloads.kinds import jobset, leader_worker_set
from sandbox.api import Api
from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.chart.conftest import Render
from tests.chart.policed import BREAK_GLASS, EFFECTIVE_S, Cluster, pod, pods, policed, refusal
from tests.chart.rendering import HelmError, Manifest
from tests.make.patches import patched
from tests.servers import wait_until
from tests.webhook.recordings import edited, recorded
from webhook import wire

BY_POLICY = {"admission": {"mutate": "policy"}, "webhook": {"failurePolicy": "Ignore"}}
DAEMON_SETS = "system:serviceaccount:kube-system:daemon-set-controller"
WITHOUT_TOKEN = {"automountServiceAccountToken": False}
"""Else a volume has a random name."""


@pytest.fixture(scope="module")
def cluster(control_plane: Sandbox, helm: Path) -> Iterator[Cluster]:
    with policed(control_plane, helm, values=BY_POLICY) as cluster:
        path = pods(cluster.bridged)
        wait_until(lambda: not refusal(cluster.user(), "POST", path, pod(ours=False)), EFFECTIVE_S)
        yield cluster


def created(cluster: Cluster, body: Manifest, by: Api) -> Manifest:
    """The pod as it would be stored in the bridged namespace."""
    path = pods(cluster.bridged)
    answer: Manifest = by.request("POST", path, body, params={"dryRun": "All"})
    metadata = {
        key: answer["metadata"].get(key)
        for key in ("labels", "annotations", "finalizers", "ownerReferences")
    }
    return {"metadata": metadata, "spec": answer["spec"]}


def untouched(cluster: Cluster, body: Manifest) -> Manifest:
    """The same with the API server's defaults only."""
    return created(cluster, body, cluster.user("root", "system:masters", BREAK_GLASS))


def by_webhook(defaulted: Manifest, user: str) -> Manifest:
    """What the webhook's patch makes of a pod; without the rules, which only it knows."""
    present = {k: v for k, v in defaulted["metadata"].items() if v is not None}
    review = wire.read(
        edited("pod", object={**defaulted, "metadata": present}, userInfo={"username": user})
    )
    result = patched(defaulted, admission.mutate(wire.draft(review), Policy()).patch)
    del result["metadata"]["annotations"][names.RULES_ANNOTATION]
    return result


def sample(name: str) -> Manifest:
    """The pod of a recorded review, without what Slurm cannot honour."""
    body: Manifest = json.loads(recorded(name))["request"]["object"]
    for key in ("namespace", "managedFields"):
        del body["metadata"][key]
    for key in ("resourceClaims", "topologySpreadConstraints", "affinity"):
        body["spec"].pop(key, None)
    for container in body["spec"]["containers"]:
        container["resources"].pop("claims", None)
    return body


def asking(**spec: Any) -> Manifest:
    return pod(ours=False, spec={**WITHOUT_TOKEN, **spec})


def annotated(**annotations: str) -> Manifest:
    return pod(ours=False, metadata={"annotations": annotations}, spec=WITHOUT_TOKEN)


@pytest.mark.parametrize(
    "body",
    [
        *(pytest.param(sample(name), id=name) for name in ("pod", "rich-pod", "pod-of-a-job")),
        pytest.param(asking(), id="plain"),
        pytest.param(pod(spec=WITHOUT_TOKEN), id="has-it-all"),
        pytest.param(asking(schedulerName=names.SCHEDULER_NAME), id="asks-for-us"),
        pytest.param(asking(schedulingGates=[{"name": "example.test/quota"}]), id="gate-of-others"),
        pytest.param(asking(tolerations=[{"operator": "Exists"}]), id="tolerates-everything"),
        pytest.param(
            annotated(**{f"{names.REQUEST_PREFIX}timelimit": "30", "example.test/a": "b"}),
            id="annotated",
        ),
        pytest.param(annotated(**{names.REQUESTER_ANNOTATION: "bob"}), id="as-somebody-else"),
    ],
)
def test_a_pod_comes_out_as_from_the_webhook(cluster: Cluster, body: Manifest) -> None:
    got = created(cluster, body, cluster.user())

    assert by_webhook(untouched(cluster, body), "alice") == got
    assert names.GATE in [gate["name"] for gate in got["spec"]["schedulingGates"]]
    assert "alice" == got["metadata"]["annotations"][names.REQUESTER_ANNOTATION]


KEYS = ("", names.MANAGED_NODE_TAINT, "example.test/a")
TOLERATIONS = st.builds(
    lambda key, effect, operator: {
        **({"key": key} if key else {}),
        "operator": operator if key else "Exists",
        **({"effect": effect} if effect else {}),
    },
    st.sampled_from(KEYS),
    st.sampled_from(("", "NoSchedule", "NoExecute", "PreferNoSchedule")),
    st.sampled_from(("Exists", "Equal")),
)
PODS = st.builds(
    lambda finalizers, annotations, spec: pod(
        ours=False,
        metadata={"finalizers": finalizers, "annotations": annotations},
        spec={**WITHOUT_TOKEN, **spec},
    ),
    st.lists(st.sampled_from((names.FINALIZER, "example.test/f", "example.test/g")), unique=True),
    st.dictionaries(
        st.sampled_from((names.REQUESTER_ANNOTATION, "example.test/a", "plain")),
        st.text("ab/~ \n\"'", max_size=5),
    ),
    st.fixed_dictionaries(
        {
            "schedulingGates": st.lists(
                st.sampled_from((names.GATE, "example.test/a", "example.test/b")), unique=True
            ).map(lambda gates: [{"name": gate} for gate in gates]),
            "tolerations": st.lists(TOLERATIONS, max_size=3),
        },
        optional={"schedulerName": st.sampled_from(("default-scheduler", names.SCHEDULER_NAME))},
    ),
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(body=PODS)
def test_any_pod_comes_out_as_from_the_webhook(cluster: Cluster, body: Manifest) -> None:
    got = created(cluster, body, cluster.user())

    assert by_webhook(untouched(cluster, body), "alice") == got
    assert got == created(
        cluster, {"apiVersion": "v1", "kind": "Pod", **_named(got)}, cluster.user()
    )


def _named(body: Manifest) -> Manifest:
    present = {k: v for k, v in body["metadata"].items() if v is not None}
    return {**body, "metadata": {"name": "again", **present}}


@pytest.mark.attack(
    "claim another rule where no webhook mutates",
    "the mutating policy removes it",
)
def test_rules_are_found_by_nobody_but_us(cluster: Cluster) -> None:
    forged = annotated(**{names.RULES_ANNOTATION: "admins", "mine": "stays"})

    got = created(cluster, forged, cluster.user())

    assert {names.REQUESTER_ANNOTATION: "alice", "mine": "stays"} == got["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("spec", "because"),
    [
        pytest.param({"schedulerName": "volcano"}, "spec.schedulerName", id="scheduler"),
        pytest.param({"nodeName": "node-0"}, "spec.nodeName", id="node"),
    ],
)
def test_pods_of_others_are_refused_as_ever(
    cluster: Cluster, spec: Mapping[str, Any], because: str
) -> None:
    said = refusal(cluster.user(), "POST", pods(cluster.bridged), asking(**spec))

    assert because in said


@pytest.mark.parametrize("key", sorted(names.WRITTEN_AT_THE_PIN))
def test_what_is_written_at_the_pin_is_nobodys_to_write_where_the_api_server_mutates(
    cluster: Cluster, key: str
) -> None:
    """A rank of 5000 digits ended both leaders, again and again."""
    body = pod(ours=False, metadata={"annotations": {key: "9" * 5000}})

    assert key in refusal(cluster.user(), "POST", pods(cluster.bridged), body)


def test_break_glass_passes_us_by(cluster: Cluster) -> None:
    got = untouched(cluster, asking())

    assert "default-scheduler" == got["spec"]["schedulerName"]
    assert {None} == set(got["metadata"].values())


def test_daemon_set_pods_pass_us_by(cluster: Cluster) -> None:
    controller = cluster.user(DAEMON_SETS, "system:masters")

    assert created(cluster, asking(), controller) == untouched(cluster, asking())


def test_other_namespaces_are_left_alone(cluster: Cluster) -> None:
    body = asking()
    path = pods(cluster.other)
    got = cluster.user().request("POST", path, body, params={"dryRun": "All"})

    assert "default-scheduler" == got["spec"]["schedulerName"]
    assert "schedulingGates" not in got["spec"]
    assert "finalizers" not in got["metadata"]


AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname"}]
}


@pytest.mark.parametrize(
    ("spec", "because"),
    [
        pytest.param({"affinity": {"podAffinity": AFFINITY}}, "podAffinity.required", id="with"),
        pytest.param(
            {"affinity": {"podAntiAffinity": AFFINITY}}, "podAntiAffinity.required", id="without"
        ),
        pytest.param(
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
                ]
            },
            "spec.topologySpreadConstraints",
            id="hard-spread",
        ),
        pytest.param(
            {"resourceClaims": [{"name": "gpu", "resourceClaimName": "one"}]},
            "spec.resourceClaims",
            id="claim",
        ),
        pytest.param(
            {
                "containers": [
                    {
                        "name": "main",
                        "image": "example.test/image",
                        "resources": {"limits": {"deviceclass.resource.kubernetes.io/gpu": "1"}},
                    }
                ]
            },
            "deviceclass.resource.kubernetes.io",
            id="claim-by-another-name",
        ),
    ],
)
def test_what_slurm_cannot_honour_is_refused_without_the_webhook(
    cluster: Cluster, spec: Mapping[str, Any], because: str
) -> None:
    said = refusal(cluster.user(), "POST", pods(cluster.bridged), asking(**spec))

    assert because in said
    assert "cannot be honoured" in said


def exclusive(*keys: str, annotation: str = jobset.EXCLUSIVE) -> Manifest:
    """A leader as JobSet's or LeaderWorkerSet's controller makes it, or nearly."""
    body = annotated(**{annotation: "rack"})
    some = [{"key": key, "operator": "Exists"} for key in keys]
    term = {"topologyKey": "rack", "labelSelector": {"matchExpressions": some}}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    body["spec"]["affinity"] = {"podAntiAffinity": terms}
    return body


@pytest.mark.parametrize(
    ("body", "is_taken"),
    [
        (exclusive("jobset.sigs.k8s.io/job-key", "jobset.sigs.k8s.io/priority"), True),
        (
            exclusive(
                "leaderworkerset.sigs.k8s.io/group-key", annotation=leader_worker_set.EXCLUSIVE
            ),
            True,
        ),
        (exclusive("jobset.sigs.k8s.io/job-key", "app"), False),
        (exclusive(), False),
        (exclusive("leaderworkerset.sigs.k8s.io/group-key"), False),
    ],
)
def test_a_groups_own_topology_is_taken_without_the_webhook_too(
    cluster: Cluster, body: Manifest, *, is_taken: bool
) -> None:
    said = refusal(cluster.user(), "POST", pods(cluster.bridged), body)

    assert is_taken == (said == "")
    assert is_taken or "podAntiAffinity.required" in said


def test_a_policy_takes_the_webhooks_place(render: Render) -> None:
    chart = render(BY_POLICY)

    (keeping,) = chart.of_kind("MutatingWebhookConfiguration")["slurm-bridge"]["webhooks"]
    assert "keep.slurm-bridge.dev" == keeping["name"]
    (validating,) = chart.of_kind("ValidatingWebhookConfiguration")["slurm-bridge"]["webhooks"]
    assert ("validate.slurm-bridge.dev", "Ignore") == (
        validating["name"],
        validating["failurePolicy"],
    )
    assert ["slurm-bridge-mutation"] == [*chart.of_kind("MutatingAdmissionPolicy")]
    expressions = json.dumps(chart.of_kind("MutatingAdmissionPolicy"))
    for key in (
        names.GATE,
        names.FINALIZER,
        names.MANAGED_NODE_TAINT,
        names.REQUESTER_ANNOTATION,
        names.RULES_ANNOTATION,
        names.SCHEDULER_NAME,
    ):
        assert f"'{key}'" in expressions


def test_the_mutating_webhook_always_fails_closed(render: Render) -> None:
    chart = render({"webhook": {"failurePolicy": "Ignore"}})

    mutating, _ = chart.of_kind("MutatingWebhookConfiguration")["slurm-bridge"]["webhooks"]
    assert "Fail" == mutating["failurePolicy"]
    assert {} == chart.of_kind("MutatingAdmissionPolicy")


def test_an_older_kubernetes_has_no_such_policy(render: Render) -> None:
    with pytest.raises(HelmError, match=r"needs Kubernetes 1\.36 or newer .* this is v1\.35\.2"):
        render(BY_POLICY, kube_version="1.35.2")


def test_rules_by_groups_need_the_webhook(render: Render) -> None:
    rule = {"name": "staff", "match": {"groups": ["staff"]}, "user": "staff"}

    with pytest.raises(HelmError, match="rule staff goes by groups"):
        render({**BY_POLICY, "config": {"policy": {"rules": [rule]}}})
