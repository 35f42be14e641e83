"""What can grow in what users and Slurm give us, and what then has to be looked at.

Each dimension makes its input before the clock starts, and returns the work that a look does with
it: reviews at CREATE, decoding, decisions. All of it is pure.
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from bridge.domain.admission import review
from bridge.domain.lifecycle import breaker, orphans
from bridge.domain.model.jobs import JobEnd, JobPhase
from bridge.domain.model.pods import Pod
from bridge.domain.nodes import fillers
from bridge.domain.request import candidates
from bridge.domain.request.attribution import Provenance
from bridge.domain.request.build import Defaults
from bridge.domain.request.effective import RequestFacts, effective
from bridge.domain.request.rules import Choice, Patterns, Policy, Rule
from bridge.domain.workloads import claims, workload
from bridge.kube import decode
from slurmruntime.kube.errors import Malformed
from slurmruntime.model.affinity import NodeTerm, Requirement, Toleration
from slurmruntime.values import hostlist, names
from slurmruntime.values.ids import JobId, KubeNode, PodUid, SlurmNode
from slurmruntime.values.lanes import Lanes
from tests.make import gangs, lives, placing
from tests.make import members as groups
from webhook import answers, wire

Work = Callable[[], object]
Manifest = dict[str, Any]

_REVIEW = Path(__file__).parents[2] / "tests" / "webhook" / "reviews" / "pod.json"
_OPEN = Choice(allowed=Patterns("*"))
_POLICY = Policy(
    rules=(Rule(name="all", source="policy rule all", user="alice", account=_OPEN, qos=_OPEN),)
)
_DEFAULTS = Defaults(cluster=placing.CLUSTER)
_SMALL = (10, 100, 1000)
_LARGE = (100, 1000, 10_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """Something that may be tenfold."""

    name: str
    sizes: tuple[int, ...]
    """Each ten times the one before."""
    prepare: Callable[[int], Work]
    is_of_pods: bool = False
    """Whether a look of this size looks at as many pods, instead of at one."""


def all_of_them() -> Iterator[Dimension]:
    """Yield every dimension."""
    yield from _reviewed()
    yield from _decoded()
    yield from _decided()
    yield from _placed()


# -- one pod: reviewed at CREATE, and decoded from the watch -------------------------------------


def _reviewed() -> Iterator[Dimension]:
    for name, grown in _GROWN_PODS.items():
        yield _one_pod(f"review: {name}", grown, _review)


def _review(fields: Manifest) -> Work:
    document = json.loads(_REVIEW.read_bytes())
    document["request"]["object"] = _merged(document["request"]["object"], fields)
    body = json.dumps(document).encode()

    def both() -> None:
        _answered(lambda pod: review.mutate(pod, _POLICY))
        _answered(lambda pod: review.validate(pod, _DEFAULTS, _POLICY))

    def _answered(judge: Callable[[review.Draft], review.Verdict]) -> None:
        request = wire.read(body)
        try:
            answers.answer(request.uid, judge(wire.draft(request)))
        except wire.MalformedObjectError as error:
            answers.refusal(request.uid, str(error))

    return both


def _decoded() -> Iterator[Dimension]:
    for name, grown in _GROWN_PODS.items():
        yield _one_pod(f"decode: {name}", grown, _decode)


def _one_pod(
    name: str, grown: Callable[[int], Manifest], prepare: Callable[[Manifest], Work]
) -> Dimension:
    return Dimension(name=name, sizes=_SMALL, prepare=lambda size: prepare(grown(size)))


def _decode(fields: Manifest) -> Work:
    body = json.dumps(_merged(json.loads(_REVIEW.read_bytes())["request"]["object"], fields))
    read = body.encode()

    def pod() -> None:
        with contextlib.suppress(Malformed):
            decode.pod(read)

    return pod


def _merged(pod: Manifest, fields: Manifest) -> Manifest:
    whole = deepcopy(pod)
    whole["metadata"] |= {"uid": "u", "name": "p", "resourceVersion": "1"}
    whole["metadata"] |= {"creationTimestamp": "2026-05-04T12:00:00Z"}
    for part, more in fields.items():
        whole[part] |= more
    return whole


def _texts(count: int, prefix: str = "example.test/key") -> Mapping[str, str]:
    return {f"{prefix}{number}": "x" * 20 for number in range(count)}


def _term(expressions: int, values: int) -> Manifest:
    keys = [f"key{number}" for number in range(expressions)]
    listed = [f"v{number}" for number in range(values)]
    return {"matchExpressions": [{"key": key, "operator": "In", "values": listed} for key in keys]}


def _affinity(terms: int, expressions: int, values: int) -> Manifest:
    wanted = {"nodeSelectorTerms": [_term(expressions, values) for _ in range(terms)]}
    hard = {"requiredDuringSchedulingIgnoredDuringExecution": wanted}
    return {"spec": {"affinity": {"nodeAffinity": hard}}}


_GROWN_PODS: Mapping[str, Callable[[int], Manifest]] = {
    "annotations": lambda n: {"metadata": {"annotations": _texts(n)}},
    "unknown request fields": lambda n: {
        "metadata": {"annotations": _texts(n, f"{names.REQUEST_PREFIX}min-node")}
    },
    "bytes of one request field": lambda n: {
        "metadata": {"annotations": {f"{names.REQUEST_PREFIX}partition": "x" * 100 * n}}
    },
    "digits of a number": lambda n: {
        "metadata": {"annotations": {f"{names.REQUEST_PREFIX}timelimit": "9" * 10 * n}}
    },
    "labels": lambda n: {"metadata": {"labels": _texts(n)}},
    "owners": lambda n: {
        "metadata": {
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "X", "name": f"o{i}", "uid": f"u{i}"} for i in range(n)
            ]
        }
    },
    "containers": lambda n: {
        "spec": {
            "containers": [
                {"name": f"c{i}", "resources": {"requests": {"cpu": "10m"}}} for i in range(n)
            ]
        }
    },
    "host ports": lambda n: {
        "spec": {
            "containers": [
                {"name": "c", "ports": [{"hostPort": i + 1, "containerPort": 1} for i in range(n)]}
            ]
        }
    },
    "tolerations": lambda n: {
        "spec": {"tolerations": [{"key": f"k{i}", "operator": "Exists"} for i in range(n)]}
    },
    "scheduling gates": lambda n: {
        "spec": {"schedulingGates": [{"name": f"example.test/g{i}"} for i in range(n)]}
    },
    "affinity terms": lambda n: _affinity(n, 1, 1),
    "affinity expressions": lambda n: _affinity(1, n, 1),
    "affinity values": lambda n: _affinity(1, 1, n),
}


# -- a workload: decided on ----------------------------------------------------------------------


def _decided() -> Iterator[Dimension]:
    for name, prepare in _GROWN_WORKLOADS.items():
        yield Dimension(name=f"decide: {name}", sizes=_LARGE, prepare=prepare, is_of_pods=True)
    yield Dimension(name="decide: jobs of one pod", sizes=_SMALL, prepare=_many_jobs)
    yield Dimension(name="orphans: placeholders", sizes=_LARGE, prepare=_orphans, is_of_pods=True)
    yield Dimension(name="breaker: pods", sizes=_LARGE, prepare=_breaker, is_of_pods=True)
    yield Dimension(name="queue: workloads", sizes=_LARGE, prepare=_queue, is_of_pods=True)


def _waiting(size: int) -> list[Pod]:
    return [gangs.waiting(f"w{number}", size) for number in range(size)]


def _running(size: int) -> list[Pod]:
    return [
        replace(gangs.running(f"r{number}", number), annotations=_sized(number, size))
        for number in range(size)
    ]


def _sized(number: int, size: int) -> Mapping[str, str]:
    notes = dict(gangs.running("r", number).annotations)
    return {**notes, names.POD_GROUP_SIZE_ANNOTATION: str(size)}


def _new_gang(size: int) -> Work:
    pods = _waiting(size)
    return lambda: gangs.decisions(pods)


def _gang_in_the_queue(size: int) -> Work:
    pods = _waiting(size)
    job = gangs.job(JobPhase.WAITING, *pods, tasks=size)
    return lambda: gangs.decisions(pods, job)


def _gang_that_starts(size: int) -> Work:
    pods = _waiting(size)
    job = gangs.job(JobPhase.RUNNING, *pods, tasks=size)
    shares = tuple(replace(share, tasks=-(-size // 2)) for share in job.shares)
    started = replace(job, shares=shares)
    return lambda: gangs.decisions(pods, started)


def _gang_that_runs(size: int) -> Work:
    pods = _running(size)
    job = gangs.job(JobPhase.RUNNING, *pods, tasks=size)
    return lambda: gangs.decisions(pods, job, mine=False)


def _gang_that_is_deleted(size: int) -> Work:
    pods = [lives.deleting(pod) for pod in _running(size)]
    job = gangs.job(JobPhase.RUNNING, *pods, tasks=size)
    return lambda: gangs.decisions(pods, job, mine=False)


def _gang_whose_job_ended(size: int) -> Work:
    pods = _running(size)
    job = gangs.job(JobPhase.ENDED, *pods, tasks=size, end=JobEnd.CANCELLED)
    return lambda: gangs.decisions(pods, job, mine=False)


_GROWN_WORKLOADS: Mapping[str, Callable[[int], Work]] = {
    "a new gang's members": _new_gang,
    "members of a gang in the queue": _gang_in_the_queue,
    "members of a gang that starts": _gang_that_starts,
    "members of a gang that runs": _gang_that_runs,
    "members of a gang that is deleted": _gang_that_is_deleted,
    "members of a gang whose job ended": _gang_whose_job_ended,
}


def _many_jobs(size: int) -> Work:
    jobs = [lives.waiting(number=number + 1) for number in range(size)]
    return lambda: lives.decide(lives.facts(lives.gated(), *jobs))


def _orphans(size: int) -> Work:
    jobs = [lives.job(number=number + 1) for number in range(size)]
    known = frozenset(PodUid(f"other-{number}") for number in range(size))
    gone = frozenset({PodUid("pod-1")})

    def look() -> None:
        found = orphans.candidates(jobs, cluster=jobs[0].identity.cluster, known=known)
        orphans.judge(
            found, gone=gone, seen=gone, suspects={}, now=lives.NOW, grace=timedelta(seconds=30)
        )

    return look


def _breaker(size: int) -> Work:
    pods = [(lives.bound(), lives.job(number=number + 1)) for number in range(size)]
    return lambda: breaker.tally(pods, lives.NOW)


def _queue(size: int) -> Work:
    def fill_and_empty() -> None:
        lanes = Lanes[int]()
        for number in range(size):
            lanes.put(number % 10, number)
        for _ in range(size):
            lanes.take()

    return fill_and_empty


# -- a placeholder: asked for, and a node: filled ------------------------------------------------


def _placed() -> Iterator[Dimension]:
    yield Dimension(name="request: nodes", sizes=_LARGE, prepare=lambda n: _request(nodes=n))
    yield Dimension(
        name="request: affinity terms", sizes=_SMALL, prepare=lambda n: _request(terms=n)
    )
    yield Dimension(
        name="request: values of a term", sizes=_SMALL, prepare=lambda n: _request(values=n)
    )
    yield Dimension(
        name="request: tolerations", sizes=_SMALL, prepare=lambda n: _request(tolerations=n)
    )
    yield Dimension(
        name="request: nodes to avoid", sizes=_SMALL, prepare=lambda n: _request(nodes=n, avoid=n)
    )
    yield Dimension(
        name="request: members of a gang", sizes=_LARGE, prepare=_gang_request, is_of_pods=True
    )
    yield Dimension(name="pool: nodes", sizes=_LARGE, prepare=_pool)
    yield Dimension(name="fillers of a node", sizes=_SMALL, prepare=_fillers)
    yield Dimension(name="hostlist: nodes", sizes=_LARGE, prepare=_hostlist)


def _nodes(count: int) -> candidates.Pool:
    kube_nodes = [placing.kube_node(f"k{number}", labels={"zone": "a"}) for number in range(count)]
    slurm_nodes = [placing.slurm_node(f"k{number}") for number in range(count)]
    return candidates.pool(kube_nodes, slurm_nodes, placing.CLUSTER)


def _pool(size: int) -> Work:
    return lambda: _nodes(size)


def _request(
    *, nodes: int = 100, terms: int = 0, values: int = 1, tolerations: int = 0, avoid: int = 0
) -> Work:
    wanted = Requirement(key="zone", operator="In", values=tuple(f"v{i}" for i in range(values)))
    matching = Requirement(key="zone", operator="In", values=("a",))
    pod = placing.pod(
        node_terms=(
            *(NodeTerm(match_labels=(wanted,)) for _ in range(terms)),
            NodeTerm(match_labels=(matching,)),
        ),
        tolerations=(
            placing.OUR_TOLERATION,
            *(Toleration(key=f"k{i}", operator="Exists") for i in range(tolerations)),
        ),
    )
    gathered = RequestFacts(
        members=(pod,),
        provenance=Provenance(owners={pod.uid: ()}),
        policy=_POLICY,
        pool=_nodes(nodes),
        avoid=tuple(SlurmNode(f"k{number}") for number in range(avoid)),
    )
    return _submitted(gathered)


def _submitted(gathered: RequestFacts) -> Work:
    effective(gathered, _DEFAULTS)  # a refusal would say nothing about the cost
    return lambda: effective(gathered, _DEFAULTS)


def _gang_request(size: int) -> Work:
    pods = tuple(groups.labelled(f"w{number}", "ring", str(size)) for number in range(size))
    gang = workload.evaluate([(claims.of(pod, []), pod) for pod in pods])
    gathered = RequestFacts(
        members=pods,
        gang=gang,
        provenance=Provenance(owners={pod.uid: () for pod in pods}),
        policy=_POLICY,
        pool=_nodes(100),
    )
    return _submitted(gathered)


def _fillers(size: int) -> Work:
    jobs = [
        replace(lives.job(number=number + 1), id=JobId(number + 1), nodes=(SlurmNode("k1"),))
        for number in range(size)
    ]
    target = fillers.Portion(cpus=size, memory_mib=1)
    return lambda: fillers.decide(target, target, jobs)


def _hostlist(size: int) -> Work:
    listed = [KubeNode(f"node{number}") for number in range(size)]
    return lambda: hostlist.expand(hostlist.compress(listed))
