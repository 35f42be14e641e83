"""Gangs, their placeholders, and what the product decides for them."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import timedelta

from bridge.domain.gang import decide, seating
from bridge.domain.gang.decide import Decisions, Observation, Plan
from bridge.domain.gang.members import Claims
from bridge.domain.gang.numbering import Topology
from bridge.domain.lifecycle.actions import Action
from bridge.domain.lifecycle.decision import Deadlines, Facts, Fit
from bridge.domain.model.allocation import TaskShare
from bridge.domain.model.jobs import JobEnd, JobPhase, SlurmJob
from bridge.domain.model.pods import Phase, Pod
from bridge.domain.workloads import claims, membership, workload
from bridge.domain.workloads.kinds import label_group
from bridge.domain.workloads.membership import Membership
from bridge.domain.workloads.workload import Workload
from slurmruntime.values.ids import KubeNode, PodUid, Sluid, SlurmNode, WorkloadKey
from tests.make import lives
from tests.make import members as build

NOW = build.CREATED + timedelta(seconds=30)
UID = WorkloadKey("pod-group/team-a/ring")
POLICY = Deadlines()
N1, N2 = SlurmNode("n1"), SlurmNode("n2")


def nowhere(_node: SlurmNode) -> str:
    """No node is in a topology."""
    return ""


def waiting(name: str, size: int = 3) -> Pod:
    return build.labelled(name, "ring", str(size))


def placed(name: str, rank: int) -> Pod:
    return build.placed(waiting(name), UID, rank)


def running(name: str, rank: int) -> Pod:
    return replace(
        placed(name, rank),
        kube_node=KubeNode("k1"),
        phase=Phase.RUNNING,
        start_time=build.CREATED,
        containers=(lives.MAIN_RUNNING,),
    )


def ended(name: str, rank: int, code: int = 0) -> Pod:
    phase = Phase.FAILED if code else Phase.SUCCEEDED
    return replace(
        running(name, rank), phase=phase, containers=(lives.exited(code, at=build.CREATED),)
    )


def uid(pod: Pod) -> PodUid:
    return pod.uid


def job(
    phase: JobPhase, *pods: Pod, number: int = 7, end: JobEnd | None = None, tasks: int = 3
) -> SlurmJob:
    made = lives.job(phase, number=number, end=end)
    identity = replace(
        made.identity,
        kind=label_group.KIND,
        name="ring",
        key=UID,
        pods=tuple(pod.uid for pod in pods),
    )
    shares = (TaskShare(node=N1, tasks=2), TaskShare(node=N2, tasks=2))
    has_nodes = phase is JobPhase.RUNNING
    return replace(
        made,
        sluid=Sluid(f"sluid-{number}"),
        identity=identity,
        tasks=tasks,
        nodes=(N1, N2) if has_nodes else (),
        shares=shares if has_nodes else (),
    )


def wanted(pods: Iterable[Pod]) -> Workload | None:
    members = [(claims.of(pod, []), pod) for pod in pods if seating.is_waiting(pod)]
    return workload.evaluate(members) if members else None


def decided(
    pods: list[Pod],
    *jobs: SlurmJob,
    misfits: tuple[Pod, ...] = (),
    dwelt: timedelta = timedelta(0),
    mine: bool = True,
    policy: Deadlines = POLICY,
    topology: Topology = nowhere,
) -> dict[str, tuple[Action, ...]]:
    """What is done for a workload, by the pod's name; `mine` are the gated pods, or all others."""
    answers = decisions(
        pods, *jobs, misfits=misfits, dwelt=dwelt, mine=mine, policy=policy, topology=topology
    )
    return {pod.name: decision.actions for pod, decision in (*answers.first, *answers.rest)}


def decisions(
    pods: list[Pod],
    *jobs: SlurmJob,
    misfits: tuple[Pod, ...] = (),
    dwelt: timedelta = timedelta(0),
    mine: bool = True,
    policy: Deadlines = POLICY,
    fresh: bool = True,
    topology: Topology = nowhere,
) -> Decisions:
    """Ask the product, with facts that say: every pod fits but the misfits."""
    planned = plan(
        pods, *jobs, dwelt=dwelt, mine=mine, policy=policy, fresh=fresh, topology=topology
    )
    facts = {
        look.pod.uid: Facts(
            pod=look.pod,
            view=look.view,
            now=NOW,
            since=look.since,
            kube_node=KubeNode("k1"),
            fit=Fit.MISFIT if look.pod in misfits else Fit.FITS,
        )
        for look in planned.open_cases
    }
    kube_nodes = {N1: KubeNode("k1"), N2: KubeNode("k2")}
    return decide.decide(planned, facts, kube_nodes, policy, now=NOW)


def plan(
    pods: list[Pod],
    *jobs: SlurmJob,
    dwelt: timedelta = timedelta(0),
    mine: bool = True,
    policy: Deadlines = POLICY,
    fresh: bool = True,
    read_again: Collection[PodUid] = (),
    topology: Topology = nowhere,
) -> Plan:
    """Let the product seat them; Slurm was just read."""
    claims = Claims([(member(pod), pod) for pod in pods], jobs)
    sights = {
        pod.uid: Observation(lives.view(*filter(claims.of(pod), jobs), fresh=fresh), NOW - dwelt)
        for pod in pods
        if pod.is_gated is mine
    }
    return decide.plan(
        claims.members[0][0].key,
        claims,
        sights,
        None,
        policy,
        now=NOW,
        topology=topology,
        read_again=read_again,
    )


def member(pod: Pod) -> Membership:
    return claims.of(pod, []) if pod.is_gated else membership.placed(pod)


A, B, C = waiting("a"), waiting("b"), waiting("c")
