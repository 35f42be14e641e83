"""The API server in memory with server-side apply, and with objects that are created and deleted at once."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
from typing_extensions import override

from slurmruntime.kube import errors
from slurmruntime.kube.apply import writes
from slurmruntime.kube.client import APPLY
from tests.make.apiserver import ApiServer, Manifest

_WRITTEN_BY_ALL = ("name", "namespace", "uid")


def fields(wanted: object) -> dict[str, Any]:
    """The fields of an applied body as `managedFields` has them; lists are held as a whole."""
    if not isinstance(wanted, Mapping):
        return {}
    return {f"f:{key}": fields(each) for key, each in wanted.items()}


class ApplyingServer(ApiServer):
    """Takes bodies by server-side apply; whoever applies takes all lists as a whole."""

    unserved: frozenset[str] = frozenset()
    """Kinds that it does not know, among those that an API server need not know."""
    refuses_events = False
    """Events are no writes that are struck in turn: whoever sends them goes on without."""

    @override
    async def request(self, method: str, path: str, **sent: Any) -> bytes:
        if path.endswith("/events"):
            if self.refuses_events:
                raise errors.Rejected(method, path, status=403, message="no right to that")
            self.said.append(msgspec.json.decode(msgspec.json.encode(sent["body"])))
            return b"{}"
        if sent.get("content_type") != APPLY:
            return await super().request(method, path, **sent)
        await asyncio.sleep(0)
        body = msgspec.json.decode(msgspec.json.encode(sent["body"]))
        return self._trouble.write(
            f"{method} {path}",
            lambda: self._apply(path, body, sent["params"]),
            fail=lambda fault: errors.Unavailable(method, path, message=fault.value),
        )

    @override
    def _read(self, method: str, path: str) -> Manifest:
        for (api_version, kind), plural in writes.PLURALS.items():
            if path == f"/apis/{api_version}" and kind not in self.unserved:
                return {"resources": [{"name": plural, "kind": kind, "namespaced": True}]}
        return super()._read(method, path)

    def _new_uid(self) -> str:
        return f"uid-{self._version + 1}"

    def _apply(self, path: str, body: Manifest, params: Mapping[str, str]) -> bytes:
        if body["kind"] in self.unserved:
            raise errors.NotFound("PATCH", path, status=404)
        manager, meta = params["fieldManager"], body["metadata"]
        found = self.objects.get(path)
        if meta.get("uid") and (found is None or found["metadata"]["uid"] != meta["uid"]):
            raise self._conflict("PATCH", path, 409, "another uid")
        own = {key: each for key, each in meta.items() if key not in _WRITTEN_BY_ALL}
        parts = {key: each for key, each in body.items() if key not in ("apiVersion", "kind")}
        managed = {
            "manager": manager,
            "operation": "Apply",
            "fieldsV1": fields({**parts, "metadata": own}),
        }
        if found is None:
            new = {**body, "metadata": {**meta, "uid": self._new_uid(), "generation": 1}}
        else:
            if params["force"] != "true" and not _is_held(found, manager):
                raise self._conflict("PATCH", path, 409, "fields of others")
            kept = {key: each for key, each in found["metadata"].items() if key not in own}
            new = {**body, "metadata": {**kept, **own}}
            if "status" in found:
                new["status"] = found["status"]
            if found.get("spec") != new.get("spec"):
                new["metadata"]["generation"] += 1
        new["metadata"]["managedFields"] = [managed]
        if found is not None and _without_version(found) == _without_version(new):
            return msgspec.json.encode(found)
        return msgspec.json.encode(self._store(path, new))


def _is_held(found: Manifest, manager: str) -> bool:
    return any(
        managed_field["manager"] == manager
        for managed_field in found["metadata"].get("managedFields", ())
    )


def _without_version(found: Manifest) -> Manifest:
    meta = {key: each for key, each in found["metadata"].items() if key != "resourceVersion"}
    return {**found, "metadata": meta}
