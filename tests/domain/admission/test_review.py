"""What happens to a pod at CREATE."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from bridge.domain.admission import by_class
from bridge.domain.admission import review as admission
from bridge.domain.admission.review import Draft, PodAffinityTerm, Verdict
from bridge.domain.model.demand import Resources
from bridge.domain.request.build import Defaults
from bridge.domain.request.rules import Patterns, Policy, Range, Rule
from bridge.domain.workloads.kinds import jobset, leader_worker_set
from slurmruntime.model.affinity import Toleration
from slurmruntime.model.json_patch import Operation
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId
from tests.domain.admission.drafts import (
    ATTRIBUTION,
    HANDED_OVER,
    NAME,
    ORDINARY,
    TOLERATION,
    add,
)
from tests.make.placing import OUR_TOLERATION, demands

DEFAULTS = Defaults(cluster=ClusterId("c-1"), gpu_resources={"nvidia.com/gpu": "gpu"})
RULE = Rule(
    name="physics",
    source="policy rule physics",
    namespaces=Patterns(["physics"]),
    user="phys",
    nice=Range(least=0, most=10),
)
POLICY = Policy(rules=(RULE,))
NOT_OURS = [
    pytest.param(replace(ORDINARY, node_name="k1"), id="placed by hand"),
    pytest.param(replace(ORDINARY, owner_kinds=("DaemonSet",)), id="a DaemonSet's"),
    pytest.param(replace(ORDINARY, owner_kinds=("Node",)), id="a node's own"),
    pytest.param(
        replace(ORDINARY, annotations={"kubernetes.io/config.mirror": "x"}), id="a mirror pod"
    ),
    pytest.param(replace(ORDINARY, scheduler_name="volcano"), id="another scheduler's"),
]

LABEL = {"op": "add", "path": "/metadata/labels", "value": {"slurm-bridge.dev/bridged": "true"}}
GATE = {"name": "slurm-bridge.dev/placement"}
FINALIZER = "slurm-bridge.dev/placeholder"


JOB_KEY, PRIORITY = "jobset.sigs.k8s.io/job-key", "jobset.sigs.k8s.io/priority"
GROUP_KEY = "leaderworkerset.sigs.k8s.io/group-key"


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(
            ORDINARY,
            [
                add("/metadata/annotations", ATTRIBUTION),
                LABEL,
                NAME,
                add("/spec/schedulingGates", [GATE]),
                add("/metadata/finalizers", [FINALIZER]),
                add("/spec/tolerations", [TOLERATION]),
            ],
            id="an ordinary pod gets everything",
        ),
        pytest.param(
            replace(
                ORDINARY,
                scheduler_name="",
                gates=("kueue.x-k8s.io/admission",),
                finalizers=("example.com/hold",),
                tolerations=(Toleration(key="gpu", operator="Exists"),),
            ),
            [
                add("/metadata/annotations", ATTRIBUTION),
                LABEL,
                NAME,
                add("/spec/schedulingGates/-", GATE),
                add("/metadata/finalizers/-", FINALIZER),
                add("/spec/tolerations/-", TOLERATION),
            ],
            id="what others wrote stays before ours",
        ),
        pytest.param(HANDED_OVER, [], id="a second call changes nothing"),
        *(
            pytest.param(
                replace(HANDED_OVER, labels=labels),
                [add("/metadata/labels/slurm-bridge.dev~1bridged", "true")],
                id=f"labelled {labels}",
            )
            for labels in ({"app": "x"}, {names.BRIDGED_LABEL: "false"})
        ),
        pytest.param(
            replace(HANDED_OVER, gates=()),
            [add("/spec/schedulingGates/-", GATE)],
            id="only what is missing is added",
        ),
        pytest.param(
            replace(HANDED_OVER, tolerations=(Toleration(operator="Exists"),)),
            [],
            id="who tolerates everything needs no toleration",
        ),
        pytest.param(
            replace(
                HANDED_OVER,
                tolerations=(replace(OUR_TOLERATION, effect="NoSchedule"),),
            ),
            [add("/spec/tolerations/-", TOLERATION)],
            id="one effect is not every effect",
        ),
        pytest.param(
            replace(HANDED_OVER, controller_uid="uid-of-a-job"),
            [add("/metadata/annotations/slurm-bridge.dev~1owner", "uid-of-a-job")],
            id="its controller is recorded",
        ),
        pytest.param(
            replace(HANDED_OVER, annotations={**ATTRIBUTION, names.OWNER_ANNOTATION: "alices"}),
            [add("/metadata/annotations/slurm-bridge.dev~1owner", "")],
            id="and nobody writes one without",
        ),
    ],
)
def test_a_pod_is_handed_over_to_slurm(pod: Draft, expected: list[Operation]) -> None:
    assert Verdict(patch=tuple(expected)) == admission.mutate(pod, POLICY)


def test_the_schedulers_name_is_a_setting() -> None:
    (first, *_) = admission.mutate(replace(HANDED_OVER, scheduler_name=""), POLICY, "slurm").patch

    assert {**NAME, "value": "slurm"} == first


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        pytest.param(("Update",), [add("/metadata/managedFields", [])], id="created"),
        pytest.param(("Update", "Apply"), [], id="applied"),
        pytest.param((), [], id="nothing is kept already"),
    ],
)
def test_nobody_keeps_account_of_fields_unless_a_pod_is_applied(
    operations: tuple[str, ...], expected: list[Operation]
) -> None:
    pod = replace(HANDED_OVER, field_operations=operations)

    assert Verdict(patch=tuple(expected)) == admission.mutate(pod, POLICY)


@pytest.mark.parametrize("pod", NOT_OURS)
def test_what_is_not_ours_to_place_is_left_alone(pod: Draft) -> None:
    """Policies refuse it to whom it is not allowed: they know the requester."""
    faulty = replace(pod, resource_claims=("gpu",))

    assert Verdict() == admission.mutate(pod, POLICY)
    assert Verdict() == admission.validate(faulty, DEFAULTS, POLICY)


def admitted(pod: Draft) -> Verdict:
    return admission.admit(pod, DEFAULTS, POLICY)


def test_in_one_call_a_pod_is_handed_over_or_refused_with_all_that_is_wrong() -> None:
    assert admission.mutate(ORDINARY, POLICY).patch == admitted(ORDINARY).patch
    faulty = replace(ORDINARY, resource_claims=("gpu",), hard_spreads=(0,), preferences=("spec.x",))

    assert admission.validate(faulty, DEFAULTS, POLICY) == admitted(faulty)
    assert ("spec.x: has no effect, Slurm chooses the node",) == admitted(faulty).warnings
    assert 2 == len(admitted(faulty).faults)


def test_in_one_call_who_a_pod_says_it_is_from_is_written_over() -> None:
    forged = replace(ORDINARY, annotations={names.REQUESTER_ANNOTATION: "root"})

    assert admission.mutate(forged, POLICY) == admitted(forged)


@pytest.mark.parametrize("pod", NOT_OURS)
def test_in_one_call_what_is_not_ours_is_left_alone_too(pod: Draft) -> None:
    marked = replace(pod, labels={names.JOB_ID_LABEL: "1"}, preferences=("spec.x",))

    assert Verdict() == admitted(replace(pod, resource_claims=("gpu",)))
    assert admission.validate(marked, DEFAULTS, POLICY) == admitted(marked)


def texts(pod: Draft) -> list[str]:
    return [fault.text for fault in admission.validate(pod, DEFAULTS, POLICY).faults]


def annotated(**fields: str) -> Mapping[str, str]:
    asked = {f"{names.REQUEST_PREFIX}{name}": value for name, value in fields.items()}
    return {**ATTRIBUTION, **asked}


def test_an_ordinary_pod_is_allowed() -> None:
    verdict = admission.validate(HANDED_OVER, DEFAULTS, POLICY)

    assert Verdict() == verdict
    assert verdict.is_allowed


@pytest.mark.parametrize("pod", [HANDED_OVER, *NOT_OURS[:1]])
def test_nobody_writes_our_label_or_annotation(pod: Draft) -> None:
    pod = replace(
        pod,
        labels={names.JOB_ID_LABEL: "1"},
        annotations={**ATTRIBUTION, names.NODE_ANNOTATION: "k1"},
    )

    assert [
        (
            "metadata.labels[scheduler.slinky.slurm.net/slurm-jobid]: "
            "leave it out: slurm-bridge writes it when the pod has a Slurm job"
        ),
        (
            "metadata.annotations[slinky.slurm.net/slurm-node]: "
            "leave it out: slurm-bridge writes it when Slurm has chosen a node"
        ),
    ] == texts(pod)


@pytest.mark.parametrize(
    "key", [names.SLUID_ANNOTATION, names.GRANT_ANNOTATION, names.WHEN_LOST_ANNOTATION]
)
def test_nobody_forges_what_a_restore_goes_by(key: str) -> None:
    (text,) = texts(replace(HANDED_OVER, annotations={key: "restore"}))

    assert text.startswith(f"metadata.annotations[{key}]: leave it out")


def anti_affinity(topology_key: str, *labels: str) -> PodAffinityTerm:
    return PodAffinityTerm(
        kind="podAntiAffinity", topology_key=topology_key, labels=frozenset(labels)
    )


@pytest.mark.parametrize(
    ("annotation", "term", "is_theirs"),
    [
        (jobset.EXCLUSIVE, anti_affinity("rack", JOB_KEY, PRIORITY), True),
        (leader_worker_set.EXCLUSIVE, anti_affinity("rack", GROUP_KEY), True),
        (jobset.EXCLUSIVE, anti_affinity("zone", JOB_KEY), False),
        (jobset.EXCLUSIVE, anti_affinity("rack", JOB_KEY, "app"), False),
        (jobset.EXCLUSIVE, anti_affinity("rack"), False),
        (leader_worker_set.EXCLUSIVE, anti_affinity("rack", JOB_KEY), False),
    ],
)
def test_what_keeps_groups_in_racks_of_their_own_is_their_controllers(
    annotation: str, term: PodAffinityTerm, is_theirs: bool
) -> None:
    """JobSet and LeaderWorkerSet write it on leaders; anything else in its place is still refused."""
    pod = replace(
        HANDED_OVER,
        annotations={**ATTRIBUTION, annotation: "rack"},
        required_pod_affinities=(term,),
    )

    assert is_theirs == (not texts(pod))


@pytest.mark.parametrize(
    ("pod", "path", "advice"),
    [
        pytest.param(
            replace(HANDED_OVER, required_pod_affinities=(anti_affinity("zone", "app"),)),
            "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
            "use preferred terms",
            id="pod anti-affinity",
        ),
        pytest.param(
            replace(HANDED_OVER, hard_spreads=(1,)),
            "spec.topologySpreadConstraints[1].whenUnsatisfiable",
            "use ScheduleAnyway",
            id="topology spread",
        ),
        pytest.param(
            replace(HANDED_OVER, resource_claims=("gpu",)),
            "spec.resourceClaims",
            "request extended resources",
            id="resource claims",
        ),
        pytest.param(
            replace(
                HANDED_OVER,
                class_askers=by_class.askers(
                    containers=[
                        (
                            Resources({"deviceclass.resource.kubernetes.io/gpu.nvidia.com": "1"}),
                            (),
                        )
                    ]
                ),
            ),
            "spec.containers[0].resources[deviceclass.resource.kubernetes.io/gpu.nvidia.com]",
            "kube-scheduler would choose the devices, not Slurm; request extended resources",
            id="resource claims in disguise",
        ),
        pytest.param(
            replace(HANDED_OVER, annotations=annotated(signal="USR1@60")),
            "metadata.annotations[slurmjob.slinky.slurm.net/signal]",
            "use terminationGracePeriodSeconds",
            id="signals",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused_with_advice(pod: Draft, path: str, advice: str) -> None:
    (text,) = texts(pod)

    assert text.startswith(f"{path}: ")
    assert "cannot be honoured" in text
    assert advice in text


def test_every_fault_is_told_at_once() -> None:
    pod = replace(
        HANDED_OVER,
        labels={names.JOB_ID_LABEL: "1"},
        annotations=annotated(timelimit="soon", qos="high", nice="5", gres="gpu:1"),
        demand=demands(**{"nvidia.com/gpu": "2"}),
        hard_spreads=(0,),
    )
    prefix = f"metadata.annotations[{names.REQUEST_PREFIX}"

    assert [
        f"metadata.labels[{names.JOB_ID_LABEL}]",
        f"{prefix}timelimit]",
        f"{prefix}qos]",
        f"{prefix}gres]",
        "spec.topologySpreadConstraints[0].whenUnsatisfiable",
    ] == [text.split(": ")[0] for text in texts(pod)]


def test_what_has_no_effect_is_warned_about() -> None:
    pod = replace(
        HANDED_OVER,
        preferences=("spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution",),
        annotations={
            **ATTRIBUTION,
            "slinky.slurm.net/timelimit": "5",
            "slinky.slurm.net/other": "x",
        },
    )

    assert (
        (
            "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution: "
            "has no effect, Slurm chooses the node"
        ),
        (
            "metadata.annotations[slinky.slurm.net/timelimit]: has no effect, "
            "use slurmjob.slinky.slurm.net/timelimit"
        ),
    ) == admission.validate(pod, DEFAULTS, POLICY).warnings
