"""Which pods the extender may bind itself, and when it does."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bridge.domain.admission import binder, review
from bridge.domain.admission.binder import Abstain, Await, Bind, BindingFacts, Report
from bridge.domain.admission.review import Draft
from bridge.domain.lifecycle.decision import Fit
from bridge.domain.model.claims.values import PodClaim, ResourceClaim
from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.pods import Phase, Pod
from bridge.domain.request.fit import FitResult
from bridge.domain.request.rules import Policy
from bridge.domain.workloads import membership
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId, JobId, KubeNode, PodUid, Sluid, SlurmNode, alone_key

NODE, UID = KubeNode("k1"), PodUid("uid-1")
POD = Pod(
    uid=UID,
    namespace="physics",
    name="one",
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
    scheduler_name=names.binder(names.SCHEDULER_NAME),
    labels={names.JOB_ID_LABEL: "7"},
    annotations={names.NODE_ANNOTATION: NODE, names.SLUID_ANNOTATION: "s7"},
)
JOB = SlurmJob(
    id=JobId(7),
    sluid=Sluid("s7"),
    phase=JobPhase.RUNNING,
    nodes=(SlurmNode("s1"),),
    identity=Identity(
        cluster=ClusterId("c"),
        kind=membership.POD,
        namespace="physics",
        name="one",
        key=alone_key(UID),
        pods=(UID,),
    ),
)
READY = BindingFacts(pod=POD, job=JOB, slurm_node=SlurmNode("s1"), fit=FitResult(Fit.FITS))


def test_a_pod_whose_job_holds_its_node_is_bound_there() -> None:
    assert Bind(NODE) == binder.decide(READY)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"job": None}, id="its job is not known"),
        pytest.param({"job": replace(JOB, sluid=Sluid("s8"))}, id="the id is another job's now"),
        pytest.param(
            {"job": replace(JOB, identity=replace(JOB.identity, key=alone_key(PodUid("uid-2"))))},
            id="the job is another pod's",
        ),
        pytest.param({"job": replace(JOB, phase=JobPhase.ENDED)}, id="its job has ended"),
        pytest.param({"job": replace(JOB, phase=JobPhase.PAUSED)}, id="its job is suspended"),
        pytest.param({"job": replace(JOB, phase=JobPhase.WAITING)}, id="its job is restored"),
        pytest.param({"job": replace(JOB, nodes=(SlurmNode("s2"),))}, id="its job is elsewhere"),
        pytest.param({"slurm_node": None}, id="its node is gone"),
        pytest.param({"fit": None}, id="nobody has looked whether it fits"),
    ],
)
def test_without_a_running_job_that_holds_the_node_it_waits(changes: Mapping[str, object]) -> None:
    assert isinstance(binder.decide(replace(READY, **changes)), Await)  # type: ignore[arg-type]  # fields by name


@pytest.mark.parametrize("fit", [Fit.MISFIT, Fit.TERMINATING])
def test_a_pod_that_does_not_fit_any_more_says_why(fit: Fit) -> None:
    found = binder.decide(replace(READY, fit=FitResult(fit, "insufficient cpu")))

    assert isinstance(found, Report)
    assert "insufficient cpu" in found.message


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(replace(POD, kube_node=NODE), id="bound"),
        pytest.param(replace(POD, deletion_at=POD.created_at), id="deleting"),
        pytest.param(replace(POD, phase=Phase.FAILED), id="ended"),
        pytest.param(replace(POD, gates=(names.GATE,)), id="gated by us"),
        pytest.param(replace(POD, gates=("example.test/quota",)), id="gated by others"),
        pytest.param(replace(POD, annotations={}), id="not assigned"),
        pytest.param(replace(POD, labels={}), id="without a job"),
    ],
)
def test_a_pod_that_is_not_to_be_bound_is_left_alone(pod: Pod) -> None:
    assert isinstance(binder.decide(replace(READY, pod=pod)), Abstain)


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(replace(POD, claims=("data",)), id="volume claim"),
        pytest.param(replace(POD, scheduling_group="ring"), id="group"),
    ],
)
def test_what_only_kube_scheduler_can_do_is_never_skipped(pod: Pod) -> None:
    """However such a pod came to have the name: admission gives it to none."""
    assert isinstance(binder.decide(replace(READY, pod=pod)), Report)


@pytest.mark.parametrize(
    ("sources", "is_grouped", "word"),
    [
        (set(), False, ""),
        (binder.PLAIN_VOLUMES, False, ""),
        ({"emptyDir", "persistentVolumeClaim"}, False, "persistentVolumeClaim"),
        ({"ephemeral"}, False, "ephemeral"),
        ({"csi"}, False, "csi"),
        ({"aKindThatComesLater"}, False, "aKindThatComesLater"),
        (set(), True, "group"),
    ],
)
def test_kube_scheduler_binds_what_it_has_to_see_to(
    sources: set[str], is_grouped: bool, word: str
) -> None:
    found = binder.reserved(sources, is_grouped=is_grouped)

    assert bool(word) == bool(found)
    assert word in found


GIVEN = ResourceClaim(
    uid="uid-gpu",
    namespace="physics",
    name="gpu",
    is_allocated=True,
    node=NODE,
    reserved_for=(UID,),
)
CLAIMING = replace(
    READY,
    pod=replace(POD, resource_claims=(PodClaim(entry="g", claim="gpu"),)),
    claims={"gpu": GIVEN},
)


def test_a_pod_whose_claim_has_its_devices_there_is_bound() -> None:
    assert Bind(NODE) == binder.decide(CLAIMING)


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(replace(GIVEN, is_allocated=False, node="", reserved_for=()), id="nothing"),
        pytest.param(replace(GIVEN, node="k2"), id="on another node"),
        pytest.param(replace(GIVEN, node=""), id="on any node"),
        pytest.param(replace(GIVEN, reserved_for=()), id="for nobody"),
        pytest.param(replace(GIVEN, reserved_for=("uid-2",)), id="for another pod"),
        pytest.param(replace(GIVEN, reserved_for=(UID, "uid-2")), id="for another pod, too"),
    ],
)
def test_a_pod_whose_claim_lacks_its_devices_there_is_told(claim: ResourceClaim) -> None:
    found = binder.decide(replace(CLAIMING, claims={"gpu": claim}))

    assert Report("resource claim gpu has no devices on k1 for this pod alone") == found


@pytest.mark.parametrize("entry", [PodClaim(entry="g"), PodClaim(entry="g", claim="other")])
def test_a_pod_whose_claim_is_not_known_waits(entry: PodClaim) -> None:
    pod = replace(CLAIMING.pod, resource_claims=(PodClaim(entry="f", claim="gpu"), entry))

    assert isinstance(binder.decide(replace(CLAIMING, pod=pod)), Await)


def test_without_device_profiles_no_pod_with_claims_is_bound() -> None:
    found = binder.decide(replace(CLAIMING, claims=None))

    assert isinstance(found, Report)
    assert "controllers.device_profiles" in found.message


ORDINARY = Draft(namespace="physics", volume_sources=frozenset(("configMap", "emptyDir")))
OURS = names.binder(names.SCHEDULER_NAME)


def name_given(pod: Draft, *, extender_binds: bool = True) -> str:
    """The scheduler's name with which the pod comes out of admission."""
    patch = review.mutate(pod, Policy(), extender_binds=extender_binds).patch
    written = [each["value"] for each in patch if each["path"] == "/spec/schedulerName"]
    return str(written[0]) if written else pod.scheduler_name


@pytest.mark.parametrize("asked", ["", "default-scheduler", names.SCHEDULER_NAME, OURS])
def test_whatever_a_user_asks_for_admission_decides_who_binds(asked: str) -> None:
    pod = replace(ORDINARY, scheduler_name=asked)
    reserved = replace(pod, volume_sources=frozenset(("persistentVolumeClaim",)))

    assert OURS == name_given(pod)
    assert names.SCHEDULER_NAME == name_given(reserved)
    assert names.SCHEDULER_NAME == name_given(pod, extender_binds=False)


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(replace(ORDINARY, is_grouped=True), id="group"),
    ],
)
def test_pods_that_kube_scheduler_must_see_to_get_its_name(pod: Draft) -> None:
    assert names.SCHEDULER_NAME == name_given(pod)


def test_pods_with_resource_claims_are_the_extenders() -> None:
    """It has given them their devices, and looks at them before it binds."""
    assert OURS == name_given(replace(ORDINARY, resource_claims=("gpu",)))


def test_a_pod_that_gets_a_volume_from_another_webhook_changes_hands() -> None:
    """The API server calls again, and the first answer was for another pod."""
    pod = replace(
        ORDINARY, scheduler_name=OURS, volume_sources=frozenset(("persistentVolumeClaim",))
    )

    assert names.SCHEDULER_NAME == name_given(pod)


@pytest.mark.parametrize("scheduler", ["volcano", f"{OURS}-binder", "another-binder"])
def test_pods_of_others_stay_theirs(scheduler: str) -> None:
    assert not review.mutate(
        replace(ORDINARY, scheduler_name=scheduler), Policy(), extender_binds=True
    ).patch
