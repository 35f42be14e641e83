"""Record Events, as shown by `kubectl describe`. Callers must deduplicate and rate-limit them."""

import enum
from dataclasses import dataclass

import structlog

from slurmruntime.kube import errors, paths
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.meta import rfc3339
from slurmruntime.process.clock import Clock
from slurmruntime.values.faults import published
from slurmruntime.values.oddities import About

_log = structlog.get_logger(__name__)

_LONGEST_NOTE = 1024
"""Bytes; see `note` in
<https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/>."""


class EventType(enum.Enum):
    """Severity of an Event."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporter:
    """The component that reports an Event."""

    controller: str
    """`slurm-bridge.dev/extender`."""
    instance: str
    """The replica: its pod's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecorder:
    """Records the Events of one component."""

    kube: KubeClient
    reporter: Reporter
    clock: Clock

    async def record(
        self, about: About, severity: EventType, *, action: str, reason: str, note: str
    ) -> None:
        """Create an Event about an object; `note` is truncated to 1 kB.

        One that fails is only logged: it is never the only place where something is said. It is not
        repeated after a lost reply, or it would appear twice.

        Args:
            action: what was done or attempted, in CamelCase: Submit, Bind …
            reason: why, in CamelCase.
        """
        regarding = {
            "apiVersion": about.api_version,
            "kind": about.kind,
            "name": about.name,
            "uid": about.uid,
        }
        if about.namespace:
            regarding["namespace"] = about.namespace
        namespace = about.namespace or "default"
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"namespace": namespace, "generateName": f"{about.name[:200]}-"},
            "regarding": regarding,
            "type": severity.value,
            "action": action,
            "reason": reason,
            "note": published(note, _LONGEST_NOTE),
            "eventTime": rfc3339(self.clock.now()),
            "reportingController": self.reporter.controller,
            "reportingInstance": self.reporter.instance,
        }
        path = paths.collection("events.k8s.io/v1", "events", namespace)
        try:
            await self.kube.request("POST", path, body=body)
        except errors.KubeError as error:
            _log.warning("event.lost", about=about.full_name, reason=reason, error=str(error))
