"""What must hold once all is quiet, as pure comparisons: each returns its breaches, in words."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from slurmruntime.values import names
from tests.integration.worlds import LIVE, Job
from tests.soak.lives import Fate, Life


class _Metadata(msgspec.Struct):
    name: str
    uid: str
    finalizers: tuple[str, ...] = ()
    deleted_at: str | None = msgspec.field(name="deletionTimestamp", default=None)
    resource_version: str = msgspec.field(name="resourceVersion", default="0")

    @property
    def version(self) -> int:
        """As a number."""
        return int(self.resource_version)


class _Gate(msgspec.Struct):
    name: str


class _Spec(msgspec.Struct):
    node: str = msgspec.field(name="nodeName", default="")
    gates: tuple[_Gate, ...] = msgspec.field(name="schedulingGates", default=())


class _Condition(msgspec.Struct):
    type: str
    reason: str = ""


class _Status(msgspec.Struct):
    phase: str = ""
    conditions: tuple[_Condition, ...] = ()


class Pod(msgspec.Struct):
    """As the API server lists it; only what is compared."""

    metadata: _Metadata
    spec: _Spec
    status: _Status

    @property
    def name(self) -> str:
        """Unique in the soak."""
        return self.metadata.name

    @property
    def is_gated(self) -> bool:
        """Our gate is on."""
        return any(gate.name == names.GATE for gate in self.spec.gates)

    @property
    def is_over(self) -> bool:
        """Succeeded or Failed, and our finalizer is off."""
        ended = self.status.phase in {"Succeeded", "Failed"}
        return ended and names.FINALIZER not in self.metadata.finalizers

    @property
    def disruption(self) -> str:
        """Why it was evicted; "" if it was not."""
        return next((c.reason for c in self.status.conditions if c.type == "DisruptionTarget"), "")


@dataclass(frozen=True, slots=True)
class Ended:
    """A pod that is gone."""

    life: Life
    phase: str
    """In which it was seen over; "" if it went before that."""


def placements(pods: Collection[Pod], queue: Sequence[Job]) -> Iterator[str]:
    """One live placeholder per live pod, none besides, and each pod on a node that its own holds.

    Args:
        pods: those that live.
        queue: of squeue.
    """
    ours = [job for job in queue if job.identity and job.state in LIVE]
    owners: Counter[str] = Counter(uid for job in ours if job.identity for uid in job.identity.pods)
    alive = {pod.metadata.uid: pod for pod in pods}
    for uid, pod in alive.items():
        if owners[uid] != 1:
            yield f"{pod.name} ({pod.status.phase}) has {owners[uid]} live placeholders"
    for job in ours:
        members = [
            alive[uid] for uid in (job.identity.pods if job.identity else ()) if uid in alive
        ]
        if not members:
            yield f"job {job.id} ({job.state}) of {job.identity} has no live pod"
        for pod in members:
            if pod.spec.node and (job.state != "RUNNING" or pod.spec.node not in _nodes(job)):
                yield f"{pod.name} is on {pod.spec.node}, job {job.id} is {job.state} on {job.nodes}"


def _nodes(job: Job) -> set[str]:
    """Of a single node's placeholder; squeue folds lists of several."""
    return {job.nodes}


def fairness(life: Life, pod: Pod) -> Iterator[str]:
    """Nothing is ended without a cause."""
    if pod.disruption and life.is_played_to_its_end:
        yield f"{pod.name} was evicted without a cause: {pod.disruption}"
    meant = "Failed" if life.exit_code else "Succeeded"
    if pod.is_over and life.is_played_to_its_end and pod.status.phase != meant:
        yield f"{pod.name} is {pod.status.phase} and was to be {meant}"


def accounts(ended: Mapping[str, Ended], accounted: Sequence[Job]) -> Iterator[str]:
    """What sacct says of each end is how it was.

    Args:
        ended: by the pods' uids.
        accounted: every job of theirs.
    """
    for uid, ends in _told(ended, accounted).items():
        life = ended[uid].life
        if not ends and life.fate is not Fate.DELETED_EARLY:  # that early, perhaps, that none was
            yield f"{life.name}: sacct knows no job of it"
        if ends and (ends[-1] not in life.accounted or len(ends) > 1):
            meant = " or ".join(map(str, life.accounted))
            yield f"{life.name}, which {life.fate.value}: sacct says {ends}, it was {meant}"


def ends(ended: Mapping[str, Ended], accounted: Sequence[Job]) -> Counter[tuple[str, str]]:
    """How many pods have ended how: in what phase or by whom, and what sacct says of that."""
    return Counter(
        (
            one.phase if one.life.is_played_to_its_end else one.life.fate.value,
            " then ".join(map(" ".join, told[uid])) or "no job",
        )
        for told in (_told(ended, accounted),)
        for uid, one in ended.items()
    )


def _told(
    ended: Mapping[str, Ended], accounted: Sequence[Job]
) -> Mapping[str, Sequence[tuple[str, str]]]:
    """State and exit code of each pod's jobs, the oldest first.

    A spare one, or one that never ran because it did not fit, says so in its identity: it is no end of the pod's.
    """
    told: dict[str, list[tuple[str, str]]] = {uid: [] for uid in ended}
    for job in sorted(accounted, key=lambda job: job.id):
        identity = job.identity
        if identity is None or identity.cause:
            continue
        for member in identity.pods:
            if member in told:
                told[member].append((job.state, job.exit_code))
    return told
