"""How the extender binds in this world, where no kube-scheduler does: on what its leader knows, which may be old."""

from typing import assert_never

from bridge.domain.admission import binder
from bridge.domain.admission.binder import Abstain, Await, Bind, BindingFacts, Report
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.request.fit import FitResult
from slurmruntime.values.ids import KubeNode, alone_key
from tests.properties.agent import Agent, Fault
from tests.properties.cluster_model import KUBE_NODES, UID
from tests.properties.stage import Stage

_SLURM_NODES = {kube_node: slurm_node for slurm_node, kube_node in KUBE_NODES.items()}


def looks_at(stage: Stage, agent: Agent, fault: Fault | None = None) -> None:
    """Let a leader of the extender, deposed or not, look at the pod and do what it decides."""
    known = _gathered(stage, agent)
    if known is None:
        return
    decision = binder.decide(known)
    match decision:
        case Report():
            stage.cluster.is_unbindable = True
        case Bind(kube_node):
            stage.passes(0.01)
            stage.writes += 1
            if fault is not Fault.REQUEST_LOST:
                _bind(stage, known, kube_node)
            stage.passes(0.01)
            if fault is Fault.DEATH and not agent.is_deposed:
                stage.leaders[agent.actor] = stage.new_leader(agent.actor)
        case Await() | Abstain():
            return
        case unreachable:
            assert_never(unreachable)


def _gathered(stage: Stage, agent: Agent) -> BindingFacts | None:
    pod = agent.pod
    if pod is None or not pod.is_for_binder or pod.is_gated or pod.assigned_node is None:
        return None
    jobs = agent.latest.by_key.get(alone_key(UID), ()) if agent.latest is not None else ()
    job = next((each for each in jobs if each.id == pod.job_id), None)
    slurm_node = _SLURM_NODES[pod.assigned_node]
    is_known = slurm_node not in stage.cluster.unknown_nodes
    return BindingFacts(
        pod=pod,
        job=job,
        slurm_node=slurm_node if is_known else None,
        fit=FitResult(stage.cluster.fits[pod.assigned_node]) if is_known else None,
    )


def _bind(stage: Stage, known: BindingFacts, kube_node: KubeNode) -> None:
    """What a Binding does, and what it must not: the API server refuses only what it can see on the pod."""
    pod = stage.cluster.pod
    if pod is None or pod.gates or pod.is_bound or pod.is_deleting or pod.is_terminal:
        return
    assert kube_node == pod.assigned_node, "bound where it was not assigned"
    assert _held(known.job, kube_node), "bound where no running placeholder was known to be"
    assert known.job is not None
    truth = stage.slurm.find(known.job.id, known.job.sluid)
    assert truth is None or truth.key == stage.cluster.placed_by, "bound by another's placeholder"
    stage.cluster.bind()


def _held(job: SlurmJob | None, kube_node: KubeNode) -> bool:
    return (
        job is not None
        and job.phase is JobPhase.RUNNING
        and kube_node in [KUBE_NODES[node] for node in job.nodes]
    )
