"""The API server as `bridge.kube` speaks to it, in memory: pods, their patches with their guards, deletion, events.

Takes the place of a `KubeClient`, so paths, bodies and patches are the product's own.
"""

import asyncio
import copy
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec

from bridge.domain.model.pods import Pod
from bridge.kube import decode, errors
from bridge.kube.cache import Cache
from bridge.kube.client import JSON_PATCH
from bridge.kube.times import rfc3339
from tests.reconcile.trouble import Trouble
from tests.virtual_time import VirtualClock

Manifest = dict[str, Any]

WATCH_LAGS_S = 0.05


class ApiServer:
    """Pods of one namespace, by name."""

    def __init__(self, clock: VirtualClock, trouble: Trouble, cache: Cache[Pod]) -> None:
        self._clock = clock
        self._trouble = trouble
        self._cache = cache
        self._version = 0
        self.pods: dict[str, Manifest] = {}

    def create(self, pod: Manifest) -> None:
        self._store(copy.deepcopy(pod))

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        content_type: str = "",
        params: Mapping[str, str] | None = None,
        accept: str = "",
    ) -> bytes:
        del params, accept
        await asyncio.sleep(0)
        if method == "GET":
            return msgspec.json.encode(self._find(method, path))
        sent = msgspec.json.decode(msgspec.json.encode(body))
        return self._trouble.write(
            f"{method} {path}",
            lambda: self._write(method, path, sent, content_type),
            fail=lambda _: errors.Unavailable(method, path),
        )

    def _write(self, method: str, path: str, body: Any, content_type: str) -> bytes:
        if method == "POST":
            return b"{}"  # an Event
        pod = copy.deepcopy(self._find(method, path))
        if method == "DELETE":
            self._guard(method, path, pod, body["preconditions"])
            grace_s = pod["spec"].get("terminationGracePeriodSeconds", 30)
            until = rfc3339(self._clock.now() + timedelta(seconds=grace_s))
            pod["metadata"].setdefault("deletionTimestamp", until)
            pod["metadata"]["deletionGracePeriodSeconds"] = grace_s
        elif content_type == JSON_PATCH:
            for operation in body:
                if not _applied(pod, operation):
                    raise errors.Conflict(method, path, status=422, message=str(operation))
        else:
            self._guard(method, path, pod, body["metadata"])
            _merge_status(pod.setdefault("status", {}), body["status"])
        return msgspec.json.encode(self._store(pod))

    def _find(self, method: str, path: str) -> Manifest:
        name = path.removesuffix("/status").rsplit("/", 1)[-1]
        if name not in self.pods:
            raise errors.NotFound(method, path, status=404)
        return self.pods[name]

    def _guard(self, method: str, path: str, pod: Manifest, wanted: Mapping[str, str]) -> None:
        if any(pod["metadata"][key] != value for key, value in wanted.items()):
            raise errors.Conflict(method, path, status=409)

    def _store(self, pod: Manifest) -> Manifest:
        """Keep it, or forget what is deleted and held by nobody; the watch tells a moment later."""
        name = pod["metadata"]["name"]
        self._version += 1
        pod["metadata"]["resourceVersion"] = str(self._version)
        is_held = pod["metadata"].get("finalizers") or pod["spec"].get("nodeName")
        is_gone = "deletionTimestamp" in pod["metadata"] and not is_held
        if is_gone:
            self.pods.pop(name, None)
        else:
            self.pods[name] = pod
        seen = decode.pod(msgspec.json.encode(pod))
        asyncio.get_running_loop().call_later(
            WATCH_LAGS_S, *((self._cache.remove, seen.uid) if is_gone else (self._cache.put, seen))
        )
        return pod


def _applied(document: Any, operation: Manifest) -> bool:
    """RFC 6902, as far as `bridge.kube.patches` uses it; the API server takes an absent path for null in a test."""
    *parents, last = (
        part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]
    )
    for part in parents:
        document = document[int(part)] if isinstance(document, list) else document.get(part)
        if document is None:
            return operation["op"] == "test" and operation.get("value") is None
    match operation["op"], document:
        case "test", list():
            return int(last) < len(document) and document[int(last)] == operation["value"]
        case "test", dict():
            return bool(document.get(last) == operation.get("value"))
        case "add", list():
            document.insert(len(document) if last == "-" else int(last), operation["value"])
        case "add" | "replace", dict():
            document[last] = operation["value"]
        case "replace", list():
            document[int(last)] = operation["value"]
        case "remove", list():
            del document[int(last)]
        case "remove", dict():
            del document[last]
        case unknown:
            raise NotImplementedError(unknown)
    return True


def _merge_status(status: Manifest, patch: Manifest) -> None:
    """Conditions merge by type."""
    conditions = {each["type"]: each for each in status.get("conditions", [])}
    conditions |= {each["type"]: each for each in patch.pop("conditions", [])}
    status |= patch
    status["conditions"] = list(conditions.values())
