"""Why a worker does not serve, in words for its NodeSet's conditions: pure."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from bridge.domain.model.devices import gres
from slurmoperator.nodesets.worker_pods import WorkerPodObject
from slurmoperator.objects.pod_status import why_not_ready
from slurmoperator.workers.situation import REASON_PREFIX, PodStage, SeenWorker
from slurmruntime.values import faults

_STARTS: Final = timedelta(minutes=2)
"""How long a worker may take until it is ready; its startup probe gives up earlier."""
_REGISTERS: Final = timedelta(seconds=30)
"""How long a worker may be ready without being in Slurm's list."""
_LONGEST: Final = 300


def not_ready(pod: WorkerPodObject, now: datetime) -> str:
    """Return why a pod is not ready; "" if it is, is going, or may still become so by itself."""
    if pod.facts.stage not in (PodStage.UNSTARTED, PodStage.STARTING):
        return ""
    name = pod.metadata.full_name
    if said := next(why_not_ready(pod.status), ""):
        return faults.shortened(f"pod {name}: {said}", _LONGEST)
    created = pod.metadata.creation_timestamp
    if created is None or created + _STARTS > now:
        return ""
    hint = (
        f"see kubectl describe pod and kubectl logs -n {pod.metadata.namespace} {pod.metadata.name}"
    )
    return f"pod {name} is not ready after more than {_STARTS.seconds} seconds: {hint}"


def not_serving(pod: WorkerPodObject, seen: SeenWorker, now: datetime) -> str:
    """Return why Slurm gives a ready worker no jobs; "" if that is not sure, or if it is our own drain."""
    if pod.facts.stage is not PodStage.READY or not seen.is_sure:
        return ""
    node = seen.node
    if node is None:
        late = f"pod {pod.metadata.full_name} is ready, and Slurm does not have it"
        return late if is_late(pod, now) else ""
    if node.states & {"DRAIN", "DOWN"} and not node.reason.startswith(REASON_PREFIX):
        said = faults.shortened(node.reason, _LONGEST) or "no reason given"
        return f"Slurm gives {node.name} no jobs: {said}"
    return ""


def is_late(pod: WorkerPodObject, now: datetime) -> bool:
    """Check whether a worker has been ready for so long that Slurm should have it."""
    since = pod.ready_since
    return pod.facts.stage is PodStage.READY and since is not None and since + _REGISTERS < now


def due(pod: WorkerPodObject, now: datetime) -> timedelta | None:
    """Return when `not_ready` says more although nothing happens."""
    created = pod.metadata.creation_timestamp
    if created is None or pod.facts.stage not in (PodStage.UNSTARTED, PodStage.STARTING):
        return None
    return created + _STARTS - now


def promised_devices(extra_conf: str) -> dict[str, int]:
    """Return how many devices of each kind a NodeSet's `extraConf` promises: `Gres=gpu:a100:2,shard:8`."""
    said = (word.partition("=") for word in extra_conf.split())
    listed = ",".join(value.strip("\"'") for key, _, value in said if key.lower() == "gres")
    return gres.by_kind(gres.counted(listed))


def lacking_devices(promised: dict[str, int], registered: str) -> Iterator[str]:
    """Yield of which kinds a node has fewer than was promised, in words.

    Args:
        promised: by kind.
        registered: the node's GRES, as Slurm has them.
    """
    has = gres.by_kind(gres.counted(registered))
    for kind, count in sorted(promised.items()):
        if has.get(kind, 0) < count:
            yield f"{has.get(kind, 0)} of {count} {kind}"
