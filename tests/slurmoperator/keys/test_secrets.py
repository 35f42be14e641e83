"""Keys are made once, whatever becomes of a request, and no error or value of ours holds one."""

import base64
import json
from collections.abc import Mapping
from typing import Any, cast

import pytest

from slurmoperator.keys import naming, secrets
from slurmoperator.objects.parts import KeyOfObject
from slurmruntime.kube import errors
from slurmruntime.kube.client import KubeClient
from slurmruntime.values.faults import Refusal
from tests.slurmoperator.keys.specs import spec


class Secrets:
    """The Secrets of an API server. `before` happens just before a Secret is stored; a reply may be lost after it."""

    def __init__(self) -> None:
        self.stored: dict[str, dict[str, Any]] = {}
        self.before: dict[str, Any] | None = None
        self.loses_reply = False

    async def request(self, method: str, path: str, *, body: Any = None, **_: Any) -> bytes:
        name = path.rpartition("/")[2]
        if method == "GET":
            if name not in self.stored:
                raise errors.NotFound(method, path, status=404)
            return json.dumps(self.stored[name]).encode()
        assert (method, path) == ("POST", "/api/v1/namespaces/ns/secrets")
        if self.before is not None:
            self.stored[self.before["metadata"]["name"]], self.before = self.before, None
        name = body["metadata"]["name"]
        if name in self.stored:
            raise errors.Conflict(method, path, status=409, reason="AlreadyExists")
        self.stored[name] = body
        if self.loses_reply:
            raise errors.Unavailable(method, path, message="connection lost")
        return json.dumps(body).encode()

    async def ensure(self, seed: int = 0, *, has_run: bool = False) -> None:
        await secrets.ensure(
            cast("KubeClient", self),
            "ns",
            naming.key_references(spec()),
            has_run=has_run,
            random_bytes=lambda length: bytes([seed]) * length,
        )

    def data(self, name: str) -> Mapping[str, bytes]:
        found = self.stored[name]["data"]
        return {key: base64.b64decode(value) for key, value in found.items()}


async def test_keys_are_made_once_and_cannot_be_changed() -> None:
    api = Secrets()

    await api.ensure(seed=1)
    made = json.dumps(api.stored)
    assert {"slurm-auth-slurm", "slurm-auth-jwt"} == api.stored.keys()
    assert len(api.data("slurm-auth-slurm")["slurm.key"]) == 1024
    assert len(api.data("slurm-auth-jwt")["jwt.key"]) == 64
    assert all(each["immutable"] for each in api.stored.values())
    assert "ownerReferences" not in made  # a Controller that is created anew has its old key

    await api.ensure(seed=2, has_run=True)
    await api.ensure(seed=3)
    assert json.dumps(api.stored) == made


async def test_a_secret_that_was_made_although_the_reply_was_lost_is_kept() -> None:
    api = Secrets()
    api.loses_reply = True

    with pytest.raises(errors.Unavailable):
        await api.ensure(seed=1)
    (made,) = api.stored.values()
    api.loses_reply = False
    await api.ensure(seed=2)

    assert api.stored[made["metadata"]["name"]] == made


async def test_who_came_first_has_made_the_key() -> None:
    api = Secrets()
    theirs = {
        "metadata": {"name": "slurm-auth-jwt"},
        "data": {"jwt.key": base64.b64encode(b"short").decode()},
    }
    api.before = theirs

    with pytest.raises(Refusal) as refused:
        await api.ensure()
    (fault,) = refused.value.faults

    assert fault.path == "spec.jwtKeyRef.key"
    assert "found 5" in fault.message
    assert api.stored["slurm-auth-jwt"] == theirs
    assert "short" not in fault.text


async def test_a_secret_that_is_missing_while_daemons_run_is_told_and_not_made() -> None:
    api = Secrets()

    with pytest.raises(Refusal) as refused:
        await api.ensure(has_run=True)

    assert ["spec.slurmKeyRef.name", "spec.jwtKeyRef.name"] == [
        fault.path for fault in refused.value.faults
    ]
    assert api.stored == {}


@pytest.mark.parametrize("text", ["é", "a", "====", "\x00"])
def test_what_is_not_base64_is_no_content(text: str) -> None:
    assert secrets.decode(text) is None
    assert {} == secrets.DataObject(data={"a": text}).values
    with pytest.raises(Refusal, match="expected text"):
        secrets.text({"a": text}, KeyOfObject(name="s", key="a"), "spec.x")
