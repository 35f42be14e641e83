"""What becomes of pods of SchedMD's bridge: taken over only if mark, label, node and state agree."""

from dataclasses import replace

import pytest

from bridge.domain.model import identities
from bridge.domain.model.jobs import JobPhase
from bridge.domain.model.pods import Phase, Pod
from slurmcli.takeover import plan as takeover
from slurmcli.takeover.plan import CancelJob, Leave, MarkedJob, RemoveFinalizer, Step, TakeOver
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId, JobId, KubeNode, PodUid, Sluid, SlurmNode, alone_key
from tests.make import lives as build

CLUSTER = ClusterId("c-1")
FINALIZERS = (names.SCHEDMDS_FINALIZER,)
POD = replace(build.bound(), finalizers=FINALIZERS)
WAITING = replace(
    POD, kube_node=None, phase=Phase.PENDING, containers=(), annotations={}, start_time=None
)
OTHER = replace(POD, name="other", uid=PodUid("pod-2"), kube_node=KubeNode("k2"))
JOB = MarkedJob(
    id=build.JOB_ID,
    sluid=Sluid("sABC"),
    phase=JobPhase.RUNNING,
    is_external=True,
    admin_comment='{"pods":["team-a/train"]}',
    nodes=(SlurmNode("s1"),),
)
GANG = replace(
    JOB,
    admin_comment='{"pods":["team-a/train","team-a/other"]}',
    nodes=(SlurmNode("k2"), SlurmNode("s1")),
)


def node(name: str, **labels: str) -> KubeNodeFacts:
    return KubeNodeFacts(name=KubeNode(name), uid=name, labels=labels)


NODES = (
    KubeNodeFacts(name=KubeNode("k1"), uid="1", labels={names.SLURM_NODE_NAME_LABEL: "s1"}),
    KubeNodeFacts(name=KubeNode("k2"), uid="2"),
)


def decided(*pods: Pod, job: MarkedJob | None = JOB) -> list[Step]:
    jobs = {} if job is None else {job.id: job}
    return list(
        takeover.steps(
            pods,
            jobs,
            kube_nodes=NODES,
            cluster=CLUSTER,
            scheduler_name=names.SCHEDULER_NAME,
        )
    )


def test_a_running_pod_is_taken_over_by_its_uid() -> None:
    (step,) = decided(POD)

    assert isinstance(step, TakeOver)
    assert ("Pod", "team-a", "train") == (
        step.identity.kind,
        step.identity.namespace,
        step.identity.name,
    )
    assert (CLUSTER, alone_key(POD.uid)) == (step.identity.cluster, step.identity.key)
    assert (POD.uid,) == step.identity.pods
    assert (None,) == step.places


def test_what_was_taken_over_by_half_is_finished() -> None:
    (first,) = decided(POD)
    assert isinstance(first, TakeOver)

    written = replace(JOB, admin_comment=identities.encode(first.identity))
    (again,) = decided(POD, job=written)

    assert isinstance(again, TakeOver)
    assert (first.identity, written.admin_comment) == (again.identity, again.comment)


def test_the_pods_of_one_job_are_a_gang_in_the_order_of_its_nodes() -> None:
    (step,) = decided(POD, OTHER, job=GANG)

    assert isinstance(step, TakeOver)
    assert (OTHER, POD) == step.pods
    assert "taken-over/sABC" == step.identity.key
    assert [(0, 2, ("k2", "k1")), (1, 2, ("k2", "k1"))] == [
        (place.rank, place.world_size, place.nodelist) for place in step.places if place
    ]


@pytest.mark.safeguard(
    "take-over",
    "a tenant writes the marks of SchedMD's bridge on a pod, to be taken over with a job of others",
    "nothing: mark, label, node and state must agree, and only Slurm's operators write the mark on a job",
)
@pytest.mark.parametrize(
    ("pods", "job", "why"),
    [
        pytest.param(
            (POD,), replace(JOB, is_external=False), "does not carry", id="no placeholder"
        ),
        pytest.param(
            (POD,),
            replace(JOB, admin_comment='{"pods":["team-b/train"]}'),
            "does not carry",
            id="a forged label",
        ),
        pytest.param(
            (POD,),
            replace(JOB, admin_comment='{"pods":["team-a/train"],"by":"x"}'),
            "does not carry",
            id="another tool's comment",
        ),
        pytest.param(
            (POD,), replace(JOB, nodes=(SlurmNode("k2"),)), "does not hold", id="another node"
        ),
        pytest.param((POD,), replace(JOB, phase=JobPhase.PAUSED), "does not run", id="suspended"),
        pytest.param(
            (replace(WAITING, name="other", uid=PodUid("pod-2")), POD),
            GANG,
            "not all pods",
            id="half a gang",
        ),
        pytest.param((build.deleting(POD),), JOB, "being deleted", id="deleting"),
        pytest.param((replace(WAITING, labels={}),), None, "no job yet", id="no label"),
        pytest.param(
            (replace(POD, scheduler_name="another"),), JOB, "--scheduler-name", id="scheduler"
        ),
        pytest.param((replace(POD, finalizers=()),), None, "has ended", id="the job is over"),
    ],
)
def test_in_doubt_it_is_left(pods: tuple[Pod, ...], job: MarkedJob | None, why: str) -> None:
    found = decided(*pods, job=job)

    assert len(pods) == len(found)
    assert all(isinstance(step, Leave) and why in step.why for step in found), found


@pytest.mark.parametrize("phase", [JobPhase.WAITING, JobPhase.RUNNING])
def test_a_job_of_waiting_pods_is_cancelled(phase: JobPhase) -> None:
    job = replace(JOB, phase=phase)

    assert [CancelJob(job_id=JOB.id, comment=JOB.admin_comment, pods=(WAITING,))] == decided(
        WAITING, job=job
    )


def test_a_pod_that_has_ended_and_only_waits_for_its_finalizer_is_let_go() -> None:
    gone = build.deleting(replace(POD, phase=Phase.SUCCEEDED))

    assert [CancelJob(job_id=JOB.id, comment=JOB.admin_comment, pods=(gone,))] == decided(gone)
    assert [RemoveFinalizer(pod=gone)] == decided(gone, job=None)


def test_pods_of_ours_are_none_of_theirs() -> None:
    assert not decided(build.bound(), build.gated())


def test_only_external_nodes_without_a_mark_are_marked() -> None:
    wanted = {names.EXTERNAL_NODE_LABEL: "true"}
    kube_nodes = [node("k1", **wanted), node("k2"), node("k3", **wanted), node("k4", **wanted)]
    external = frozenset({"IDLE", "EXTERNAL"})
    slurm_nodes = [
        build_node("k1", external),
        build_node("k2", external),
        build_node("k3", frozenset({"IDLE"})),
        build_node("k4", external, f"{names.CLUSTER_FEATURE}=other"),
    ]

    found = takeover.unmarked_nodes(kube_nodes, slurm_nodes)

    assert ["k1"] == [each.name for each in found]


def build_node(name: str, states: frozenset[str], *features: str) -> SlurmNodeFacts:
    return SlurmNodeFacts(name=SlurmNode(name), states=states, features=features)


def test_a_mark_nested_without_end_is_none() -> None:
    endless = replace(JOB, id=JobId(4711), admin_comment='{"pods":' + "[" * 100_000)

    (step,) = decided(POD, job=endless)

    assert isinstance(step, Leave)
    assert "mark" in step.why
