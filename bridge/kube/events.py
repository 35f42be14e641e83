"""Events, as `kubectl describe` shows them. To say a thing once, or rarely, is the caller's business."""

import enum
from dataclasses import dataclass
from datetime import datetime

from bridge.domain.faults import shortened
from bridge.domain.model.nodes import KubeNodeFacts
from bridge.domain.model.pods import Pod
from bridge.domain.oddities import About
from bridge.kube import paths
from bridge.kube.client import KubeClient
from bridge.kube.times import rfc3339

_LONGEST_NOTE = 1024
"""Bytes; `note` in <https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/>."""


class EventType(enum.Enum):
    """Whether something is wrong."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporter:
    """Who says it."""

    controller: str
    """`slurm-bridge.dev/extender`."""
    instance: str
    """Which replica: the pod's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What is said of a pod or a node."""

    type: EventType
    action: str
    """What was done or tried, CamelCase: Submit, Bind …"""
    reason: str
    """Why, CamelCase."""
    note: str
    """For people; what is above 1 kB is cut off."""
    at: datetime


async def create_event(
    client: KubeClient, about: Pod | KubeNodeFacts | About, event: Event, *, by: Reporter
) -> None:
    """Report an event. Not to be repeated after a lost reply: it would be told twice."""
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
        "note": shortened(event.note, _LONGEST_NOTE),
        "eventTime": rfc3339(event.at),
        "reportingController": by.controller,
        "reportingInstance": by.instance,
    }
    path = paths.collection("events.k8s.io/v1", "events", namespace)
    await client.request("POST", path, body=body)


def _reference(about: Pod | KubeNodeFacts | About) -> dict[str, str]:
    if isinstance(about, About):
        where = {"namespace": about.namespace} if about.namespace else {}
        return {
            "apiVersion": "v1",
            "kind": about.kind,
            **where,
            "name": about.name,
            "uid": about.uid,
        }
    if isinstance(about, Pod):
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
        }
    return {"apiVersion": "v1", "kind": "Node", "name": about.name, "uid": about.uid}
