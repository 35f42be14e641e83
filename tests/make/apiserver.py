"""The API server as `bridge.kube` speaks to it, in memory: objects, patches with their guards, deletion, events.

Takes the place of a `KubeClient`, so paths, bodies and patches are the product's own.
"""

import asyncio
import copy
from collections import deque
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import msgspec

from bridge.kube.decode import BOUND_PODS
from slurmruntime.kube import errors
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.client import APPLY, JSON_PATCH, STRATEGIC_MERGE_PATCH
from slurmruntime.kube.meta import rfc3339
from slurmruntime.process.clock import Clock
from slurmruntime.values import names
from tests.make.trouble import Fault, Trouble

Manifest = dict[str, Any]

WATCH_LAGS_S = 0.05

_COLLECTIONS = {
    "Pod": "/api/v1/namespaces/{namespace}/pods",
    "PersistentVolumeClaim": "/api/v1/namespaces/{namespace}/persistentvolumeclaims",
    "Secret": "/api/v1/namespaces/{namespace}/secrets",
    "Node": "/api/v1/nodes",
    "Namespace": "/api/v1/namespaces",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaimtemplates",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "MutatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
}


class ApiServer:
    """Objects by their paths; each cache that it is given watches its own kind."""

    def __init__(self, clock: Clock, trouble: Trouble, *caches: Cache[Any]) -> None:
        self._clock = clock
        self._trouble = trouble
        self._caches = caches
        self._version = 0
        self._events: deque[tuple[Callable[[Any], None], Any]] = deque()
        """What the watches have not told yet."""
        self.said: list[Manifest] = []
        """The Events that were created."""
        self.objects: dict[str, Manifest] = {}
        self.conflicts: list[str] = []
        """Every write whose guard did not hold."""

    @property
    def pods(self) -> dict[str, Manifest]:
        """All of them, by name."""
        return self.of("Pod")

    def of(self, kind: str) -> dict[str, Manifest]:
        """All objects of a kind, by name."""
        found = (manifest for manifest in self.objects.values() if manifest["kind"] == kind)
        return {each["metadata"]["name"]: each for each in found}

    def create(self, manifest: Manifest) -> None:
        """Take in an object as a user wrote it."""
        namespace = manifest["metadata"].get("namespace", "")
        collection = _COLLECTIONS[manifest["kind"]].format(namespace=namespace)
        self._store(f"{collection}/{manifest['metadata']['name']}", copy.deepcopy(manifest))

    def remove(self, kind: str, name: str) -> None:
        """Delete an object at once, its finalizers stripped."""
        path = next(
            path
            for path, each in self.objects.items()
            if (each["kind"], each["metadata"]["name"]) == (kind, name)
        )
        self._tell(self.objects.pop(path), is_gone=True)

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
            return self._trouble.read(
                f"{method} {path}",
                lambda: msgspec.json.encode(self._read(method, path)),
                fail=lambda fault: _failure(fault, method, path),
            )
        sent = msgspec.json.decode(msgspec.json.encode(body))
        return self._trouble.write(
            f"{method} {path}",
            lambda: self._write(method, path, sent, content_type),
            fail=lambda fault: _failure(fault, method, path),
        )

    def _read(self, method: str, path: str) -> Manifest:
        if path.endswith("/pods"):
            items = [each for key, each in self.objects.items() if key.startswith(f"{path}/")]
            return self._page(items)
        if path.endswith("/v1/resourceclaims"):
            return self._page(list(self.of("ResourceClaim").values()))
        return self._find(method, path)

    def _page(self, items: list[Manifest]) -> Manifest:
        return {"metadata": {"resourceVersion": str(self._version)}, "items": items}

    def _write(self, method: str, path: str, body: Any, content_type: str) -> bytes:
        if method == "POST" and path.endswith("/binding"):
            return self._bind(method, path, body)
        if method == "POST" and path.endswith("/resourceclaimtemplates"):
            return self._create(method, f"{path}/{body['metadata']['name']}", body)
        if method == "POST":
            self.said.append(body)
            return b"{}"
        path = path.removesuffix("/status")
        found = copy.deepcopy(self._find(method, path))
        if method == "DELETE":
            self._guard(method, path, found, body["preconditions"])
            own_s = found["spec"].get("terminationGracePeriodSeconds", 30)
            grace_s = body.get("gracePeriodSeconds", own_s)
            until = rfc3339(self._clock.now() + timedelta(seconds=grace_s))
            found["metadata"].setdefault("deletionTimestamp", until)
            before_s = found["metadata"].get("deletionGracePeriodSeconds", grace_s)
            found["metadata"]["deletionGracePeriodSeconds"] = min(before_s, grace_s)
        elif content_type == JSON_PATCH:
            for operation in body:
                if not _applied(found, operation):
                    raise self._conflict(method, path, 422, str(operation))
        else:
            annotations = body["metadata"].pop("annotations", {})
            self._guard(method, path, found, body["metadata"])
            if annotations:
                _merge(found["metadata"].setdefault("annotations", {}), annotations)
            if content_type in (STRATEGIC_MERGE_PATCH, APPLY):
                _merge_status(found.setdefault("status", {}), body["status"])
            else:
                _merge(found, body)
        return msgspec.json.encode(self._store(path, found))

    def _create(self, method: str, path: str, body: Any) -> bytes:
        if path in self.objects:
            raise self._conflict(method, path, 409, "it exists")
        return msgspec.json.encode(self._store(path, body))

    def _bind(self, method: str, path: str, body: Any) -> bytes:
        """As the API server's `assignPod`: neither a gated nor a deleting nor a bound pod."""
        found = copy.deepcopy(self._find(method, path.removesuffix("/binding")))
        self._guard(method, path, found, {"uid": body["metadata"]["uid"]})
        spec = found["spec"]
        if spec.get("schedulingGates") or spec.get("nodeName"):
            raise self._conflict(method, path, 409, "it has gates, or its node")
        if "deletionTimestamp" in found["metadata"]:
            raise self._conflict(method, path, 409, "it is being deleted")
        spec["nodeName"] = body["target"]["name"]
        scheduled = {"type": "PodScheduled", "status": "True", "reason": "", "message": ""}
        _merge_status(found.setdefault("status", {}), {"conditions": [scheduled]})
        self._store(path.removesuffix("/binding"), found)
        return b"{}"

    def _find(self, method: str, path: str) -> Manifest:
        if path not in self.objects:
            raise errors.NotFound(method, path, status=404, reason="NotFound")
        return self.objects[path]

    def _guard(self, method: str, path: str, found: Manifest, wanted: Mapping[str, str]) -> None:
        if any(found["metadata"][key] != value for key, value in wanted.items()):
            raise self._conflict(method, path, 409, str(wanted))

    def _conflict(self, method: str, path: str, status: int, what: str) -> errors.Conflict:
        self.conflicts.append(f"{method} {path}: {what}")
        return errors.Conflict(method, path, status=status, message=what)

    def _store(self, path: str, found: Manifest) -> Manifest:
        """Keep it, or forget what is deleted and held by nobody."""
        self._version += 1
        found["metadata"]["resourceVersion"] = str(self._version)
        for part in (found["metadata"], found.get("spec", {})):
            for field in [key for key, value in part.items() if value in ([], {})]:
                del part[field]  # as the API server leaves out what is empty
        is_held = found["metadata"].get("finalizers") or found.get("spec", {}).get("nodeName")
        is_gone = "deletionTimestamp" in found["metadata"] and not is_held
        if is_gone:
            self.objects.pop(path, None)
        else:
            self.objects[path] = found
        self._tell(found, is_gone=is_gone)
        return found

    def _tell(self, found: Manifest, *, is_gone: bool) -> None:
        """Let the watches know, a moment later and in order: timers of one moment may change places."""
        for cache in self._caches:
            if not _is_watched(found, cache):
                continue
            seen = cache.kind.read(msgspec.json.encode(found))
            change = (cache.remove, cache.kind.identify(seen).key) if is_gone else (cache.put, seen)
            self._events.append(change)
            asyncio.get_running_loop().call_later(WATCH_LAGS_S, self._deliver)

    def _deliver(self) -> None:
        deliver, what = self._events.popleft()
        deliver(what)


def _is_watched(found: Manifest, cache: Cache[Any]) -> bool:
    """Pods of another scheduler are in the other cache."""
    kind = found["kind"]
    collection = _COLLECTIONS.get(kind, f"/{kind.lower()}s")
    if not cache.kind.path.endswith(f"/{collection.rpartition('/')[2]}"):
        return False
    scheduler = found.get("spec", {}).get("schedulerName", names.SCHEDULER_NAME)
    ours = scheduler in names.schedulers(names.SCHEDULER_NAME)
    return found["kind"] != "Pod" or ours is not (cache.kind is BOUND_PODS)


def _failure(fault: Fault, method: str, path: str) -> errors.KubeError:
    return errors.Unavailable(method, path, message=fault.value)


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


def _merge(document: Manifest, patch: Manifest) -> None:
    """RFC 7396."""
    for key, value in patch.items():
        if value is None:
            document.pop(key, None)
        elif isinstance(value, dict):
            _merge(document.setdefault(key, {}), value)
        else:
            document[key] = value


def _merge_status(status: Manifest, patch: Manifest) -> None:
    """Conditions merge by type, field by field; names of claims by their entry."""
    conditions = {condition["type"]: condition for condition in status.get("conditions", [])}
    for each in patch.pop("conditions", []):
        if each.get("$patch") == "delete":
            conditions.pop(each["type"], None)
        else:
            conditions[each["type"]] = {**conditions.get(each["type"], {}), **each}
    claims = {
        resource_claim_status["name"]: resource_claim_status
        for resource_claim_status in status.get("resourceClaimStatuses", [])
    }
    claims |= {each["name"]: each for each in patch.pop("resourceClaimStatuses", [])}
    if claims:
        status["resourceClaimStatuses"] = list(claims.values())
    status |= patch
    status["conditions"] = list(conditions.values())
