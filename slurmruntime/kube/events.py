"""Create Events, as shown by `kubectl describe`. Callers must deduplicate and rate-limit them."""

import enum
from dataclasses import dataclass
from datetime import datetime

from slurmruntime.kube import paths
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.meta import rfc3339
from slurmruntime.values.faults import published
from slurmruntime.values.oddities import About

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
class Event:
    """Content of an Event about an object."""

    type: EventType
    action: str
    """What was done or attempted, in CamelCase: Submit, Bind …"""
    reason: str
    """Why, in CamelCase."""
    note: str
    """Message for people; truncated to 1 kB."""
    at: datetime


async def create_event(client: KubeClient, about: About, event: Event, *, by: Reporter) -> None:
    """Create an Event. Do not retry after a lost reply: the Event would appear twice."""
    regarding = _reference(about)
    namespace = regarding.get("namespace", "default")
    body = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": namespace, "generateName": f"{about.name[:200]}-"},
        "regarding": regarding,
        "type": event.type.value,
        "action": event.action,
        "reason": event.reason,
        "note": published(event.note, _LONGEST_NOTE),
        "eventTime": rfc3339(event.at),
        "reportingController": by.controller,
        "reportingInstance": by.instance,
    }
    path = paths.collection("events.k8s.io/v1", "events", namespace)
    await client.request("POST", path, body=body)


def _reference(about: About) -> dict[str, str]:
    where = {"namespace": about.namespace} if about.namespace else {}
    return {
        "apiVersion": about.api_version,
        "kind": about.kind,
        **where,
        "name": about.name,
        "uid": about.uid,
    }
