"""Pods as the API server stores them, read as the caches read them."""

import json

from bridge.domain.model.pods import (
    BoundPod,
    Container,
    Pod,
)
from bridge.kube import decode
from tests.kube.manifests import Manifest, pod

NEW = "2026-01-01T12:00:00Z"


def stored(manifest: Manifest, status: Manifest | None = None, **metadata: object) -> Manifest:
    """As the API server returns it."""
    assigned = {
        "namespace": "ns",
        "uid": "u-1",
        "resourceVersion": "7",
        "creationTimestamp": NEW,
        "managedFields": [{"manager": "x", "fieldsV1": {"f:spec": {}}}],
    }
    return {
        **manifest,
        "metadata": {**manifest["metadata"], **assigned, **metadata},
        "status": {"phase": "Pending", **(status or {})},
    }


def read_pod(manifest: Manifest) -> Pod:
    return decode.pod(json.dumps(manifest).encode())


def read_bound(manifest: Manifest) -> BoundPod:
    return decode.bound_pod(json.dumps(manifest).encode())


def container_of(status: Manifest) -> Container:
    """The main container with this `containerStatuses[0]`."""
    reported = {"containerStatuses": [{"name": "main", "ready": False, **status}]}
    return read_pod(stored(pod("a"), reported)).containers[0]
