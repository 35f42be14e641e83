"""Left alone, with everything reachable again, the world settles: nothing leaks, nothing is written any more."""

from datetime import timedelta

from bridge.domain.lifecycle.decision import Actor, Fit
from bridge.domain.lifecycle.rules import time_limits
from bridge.domain.model.jobs import JobPhase
from slurmruntime.values import names
from tests.properties import binding
from tests.properties.cluster_model import FOREIGN_GATE, KUBE_NODES
from tests.properties.slurm_model import NODES, Job
from tests.properties.stage import Stage

ROUND_S = 15.0
ROUNDS = 70
"""Longer than the longest deadline."""
QUIET_ROUNDS = 3
SOON = timedelta(minutes=8)


def settle(stage: Stage) -> None:
    """Let the storm be over and everybody do their work, then look at what is left."""
    calm_down(stage)
    writes = 0
    warned = {job.key for job in stage.slurm.ours(live=True) if has_time(stage, job)}
    for number in range(ROUNDS):
        if number == ROUNDS - QUIET_ROUNDS:
            writes = stage.writes
        others_work(stage)
        for actor in Actor:
            leader = stage.leaders[actor]
            leader.sees(stage.cluster.pod, stage.clock)
            stage.looks(leader)
            stage.acts(leader)
            stage.check()
        stage.collect_orphans(is_synced=True)
        stage.passes(ROUND_S)
    check_rest(stage)
    assert not warned & stage.overrun, "Slurm took its node from under its containers"
    assert writes == stage.writes, "it goes on writing although nothing changes"


def has_time(stage: Stage, job: Job) -> bool:
    """Enough for somebody to come and extend it."""
    ends_at = job.seen.ends_at
    is_late = ends_at is None or ends_at - stage.now < 2 * time_limits.LEAD
    return job.seen.phase is JobPhase.RUNNING and not is_late


def calm_down(stage: Stage) -> None:
    stage.slurm.reachable = True
    stage.cluster.unknown_nodes.clear()
    stage.cluster.fits = dict.fromkeys(KUBE_NODES.values(), Fit.FITS)
    stage.cluster.lift(FOREIGN_GATE)
    lift_distant_limits(stage)
    stage.passes(ROUND_S)


def lift_distant_limits(stage: Stage) -> None:
    """What ends by its limit ends soon, or not at all while we look."""
    stage.slurm.limit_min = None
    for job in stage.slurm.ours(live=True):
        ends_at = job.seen.ends_at
        if ends_at is not None and ends_at - stage.now > SOON:
            job.change(time_limit_min=None, ends_at=None)


def others_work(stage: Stage) -> None:
    """Slurm starts and resumes, kube-scheduler or the extender binds, the kubelet runs and stops, pod GC clears lost nodes."""
    for job in stage.slurm.ours(live=True):
        go_on(stage, job)
    cluster = stage.cluster
    if cluster.when(lambda pod: pod.is_for_binder):
        binding.looks_at(stage, stage.leaders[Actor.EXTENDER])
    else:
        cluster.bind()
    cluster.kubelet_accepts(stage.now)
    cluster.kubelet_stops_deleted(stage.now)
    cluster.kubelet_starts()
    cluster.kubelet_reports()
    cluster.kubelet_lets_go()
    if cluster.node_is_gone:
        cluster.delete(stage.now, grace_s=0)
    cluster.forget_what_is_over()


def go_on(stage: Stage, job: Job) -> None:
    job.change(held=False)
    if job.seen.phase is JobPhase.WAITING:
        nodes = [node for node in NODES if node not in job.avoid]
        stage.slurm.start(job, (nodes or NODES)[0], stage.now)
    elif job.seen.phase is JobPhase.PAUSED:
        job.change(phase=JobPhase.RUNNING)


def check_rest(stage: Stage) -> None:
    """Exactly one live placeholder per live pod, and none besides."""
    pod = stage.cluster.pod
    live = [job.seen for job in stage.slurm.ours(live=True)]
    if pod is None:
        assert not live, "placeholders without a pod"
        return
    assert not pod.is_deleting, "a deleted pod is never let go"
    assert not pod.is_gated or pod.is_terminal, "a waiting pod never gets its turn"
    if pod.is_terminal:
        assert not pod.has_our_finalizer, "the finalizer of a pod that ended stays"
        assert not live, "the placeholder of a pod that ended lives on"
        return
    said = pod.condition(names.ALLOCATED_CONDITION)
    reason = said.reason if said is not None else ""
    if reason in ("GateRemoved", "PlaceholderLost"):
        assert not live, f"{reason}, and yet there are placeholders"
        return
    assert [pod.job_id] == [job.id for job in live], "not exactly the placeholder it was placed by"
    assert [JobPhase.RUNNING] == [job.phase for job in live]
    holds = [KUBE_NODES[node] for node in live[0].nodes]
    assert holds == [pod.kube_node] or reason == "NodeMismatch", (
        "on a node that Slurm gave to others"
    )
