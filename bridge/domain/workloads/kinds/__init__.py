"""Every kind of workload, in order of precedence. A new kind is a file here and a line below.

These two lists determine which kind claims a pod, what the chart lets the extender read (`make
manifests`), and the table in docs/workloads.md (`make docs`).
"""

from collections.abc import Mapping, Sequence

from bridge.domain.workloads import counting
from bridge.domain.workloads.kinds import kueue, leader_worker_set
from bridge.domain.workloads.kinds.coscheduling import Coscheduling
from bridge.domain.workloads.kinds.job import Job
from bridge.domain.workloads.kinds.jobset import JobSet
from bridge.domain.workloads.kinds.kubeflow import Kubeflow
from bridge.domain.workloads.kinds.kueue import Kueue
from bridge.domain.workloads.kinds.label_group import LabelGroup
from bridge.domain.workloads.kinds.leader_worker_set import LeaderWorkerSet
from bridge.domain.workloads.kinds.owner import AnyOwner
from bridge.domain.workloads.kinds.pod import SinglePod
from bridge.domain.workloads.kinds.pod_group import InTree
from bridge.domain.workloads.kinds.ray import Ray
from bridge.domain.workloads.kinds.volcano import Volcano
from bridge.domain.workloads.membership import (
    Kind,
    KindWithExclusiveTopology,
    KindWithObjects,
    KindWithRanks,
)
from slurmruntime.values import names

NAMED: tuple[Kind, ...] = (
    InTree(),
    Coscheduling(),
    Volcano(),
    LabelGroup(),
    Kueue(),
)
"""Groups that a pod names itself, whatever owns it: two that claim the same pod are a fault."""

OWNED: tuple[Kind, ...] = (
    LeaderWorkerSet(),
    JobSet(),
    Kubeflow(),
    Ray(),
    Job(),
    AnyOwner(),
    SinglePod(),
)
"""Groups that follow from the owners: the first that claims the pod gets it; the last claims every
pod."""

ALL: tuple[Kind, ...] = (*NAMED, *OWNED)

SIZE_ANNOTATIONS = (names.POD_GROUP_SIZE_ANNOTATION, kueue.SIZE, leader_worker_set.SIZE)
"""Annotations by which a pod itself declares the size of its gang."""

RANKED: tuple[KindWithRanks, ...] = tuple(kind for kind in ALL if isinstance(kind, KindWithRanks))
"""Kinds whose controllers number their pods."""

EXCLUSIVE_TERMS: Mapping[str, frozenset[str]] = {
    kind.exclusive.annotation: kind.exclusive.labels
    for kind in ALL
    if isinstance(kind, KindWithExclusiveTopology)
}
"""Annotation of exclusive topology → the labels by which its controller keeps a group together and
others away."""


def declared_size(annotations: Mapping[str, str]) -> int:
    """Return the largest gang size that a pod's annotations declare; 0 if they declare none."""
    numbers = (counting.number(annotations.get(key, "")) for key in SIZE_ANNOTATIONS)
    return max((number for number in numbers if number is not None), default=0)


def reads(among: Sequence[Kind] = ALL) -> Mapping[str, tuple[str, ...]]:
    """Return the resources that these kinds read, by API group."""
    by_group: dict[str, set[str]] = {}
    for kind in among:
        for read in kind.reads if isinstance(kind, KindWithObjects) else ():
            by_group.setdefault(read.group, set()).update(read.resources)
    return {group: tuple(sorted(by_group[group])) for group in sorted(by_group)}


_OF_GANGS = reads(OWNED[:-1])
"""The last of them makes no gangs."""


def may_be_gang(api_version: str, kind: str) -> bool:
    """Check whether objects of this kind may make their pods a gang: it is read for that."""
    group, slash, _ = api_version.partition("/")
    return f"{kind.lower()}s" in _OF_GANGS.get(group if slash else "", ())
