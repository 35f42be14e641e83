"""Explains, for its NodeSet's conditions, why a worker does not serve: pure."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from bridge.domain.model.devices import gres
from slurmoperator.nodesets.plan.look import PodFacts
from slurmoperator.objects.pod_status import why_not_ready
from slurmoperator.workers.situation import REASON_PREFIX, PodStage, WorkerObservation
from slurmruntime.values import faults

_STARTS: Final = timedelta(minutes=2)
"""How long a worker may take to become ready; its startup probe gives up earlier."""
_REGISTERS: Final = timedelta(seconds=30)
"""How long a ready worker may be missing in Slurm."""
_LONGEST: Final = 300


def not_ready(pod: PodFacts, now: datetime) -> str:
    """Return why a pod is not ready; "" if it is, is ending, or may still become so by itself."""
    if pod.worker.stage not in (PodStage.UNSTARTED, PodStage.STARTING):
        return ""
    name = pod.version.metadata.full_name
    if why := next(why_not_ready(pod.version.status), ""):
        return faults.shortened(f"pod {name}: {why}", _LONGEST)
    created = pod.version.metadata.creation_timestamp
    if created is None or created + _STARTS > now:
        return ""
    namespace = pod.version.metadata.namespace
    hint = f"see kubectl describe pod and kubectl logs -n {namespace} {pod.version.metadata.name}"
    return f"pod {name} is not ready after more than {_STARTS.seconds} seconds: {hint}"


def not_serving(pod: PodFacts, seen: WorkerObservation, now: datetime) -> str:
    """Return why Slurm starts no jobs on a ready worker; "" if unsure, or for our own drain."""
    if pod.worker.stage is not PodStage.READY or not seen.is_sure:
        return ""
    node = seen.node
    if node is None:
        missing = f"pod {pod.version.metadata.full_name} is ready but not registered in Slurm"
        return missing if is_late(pod, now) else ""
    if node.states & {"DRAIN", "DOWN"} and not node.reason.startswith(REASON_PREFIX):
        reason = faults.shortened(node.reason, _LONGEST) or "no reason given"
        return f"Slurm starts no jobs on {node.name}: {reason}"
    return ""


def is_late(pod: PodFacts, now: datetime) -> bool:
    """Check whether a worker has been ready long enough that Slurm should have it."""
    since = pod.ready_since
    return pod.worker.stage is PodStage.READY and since is not None and since + _REGISTERS < now


def due(pod: PodFacts, now: datetime) -> timedelta | None:
    """Return when `not_ready` reports more without an event."""
    created = pod.version.metadata.creation_timestamp
    if created is None or pod.worker.stage not in (PodStage.UNSTARTED, PodStage.STARTING):
        return None
    return created + _STARTS - now


def promised_devices(extra_conf: str) -> dict[str, int]:
    """Return the devices by kind that an `extraConf` promises: `Gres=gpu:a100:2,shard:8`."""
    settings = (word.partition("=") for word in extra_conf.split())
    listed = ",".join(value.strip("\"'") for key, _, value in settings if key.lower() == "gres")
    return gres.by_kind(gres.counted(listed))


def lacking_devices(promised: dict[str, int], registered: str) -> Iterator[str]:
    """Yield a text such as `1 of 2 gpu` for each promised kind of which a node has too few in the GRES that Slurm lists."""
    has = gres.by_kind(gres.counted(registered))
    for kind, count in sorted(promised.items()):
        if has.get(kind, 0) < count:
            yield f"{has.get(kind, 0)} of {count} {kind}"
