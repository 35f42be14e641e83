"""Operations as one user: what resources are built on."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from slurmclient.api.operation import Value
from slurmclient.calls import answers
from slurmclient.calls.caller import Caller
from slurmclient.errors import NotFound, Remark
from slurmclient.wire import reading, writing
from slurmclient.wire.reading import Answer, Listing

V = TypeVar("V", bound=Struct)

OnWrite = Callable[[str, str], Awaitable[None]]
"""Hears of a change that Slurm has accepted, before the caller does: the list's name, `jobs`, and the object's."""


class Outcome(Struct, frozen=True):
    """What Slurm says to a change that it has accepted; some warnings are refusals of a part."""

    warnings: tuple[Remark, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Speaker:
    """Performs operations as one user."""

    caller: Caller
    user: str
    """"": the token's own."""
    on_write: list[OnWrite] = field(default_factory=list)

    async def read(
        self,
        operation: str,
        key: str,
        kind: type[V],
        path: Mapping[str, str | int] | None = None,
        query: Mapping[str, Value] | None = None,
    ) -> Listing[V] | None:
        """Read the list `key` of an answer; None: nothing has changed since the query's `update_time`."""
        body = await self.caller.call(operation, path, query, user=self.user, is_checked=False)
        return answers.listing(operation, body, key, kind) if body else None

    async def read_one(
        self,
        operation: str,
        key: str,
        kind: type[V],
        path: Mapping[str, str | int] | None = None,
        query: Mapping[str, Value] | None = None,
    ) -> V:
        """Read the first object of an answer's list.

        Raises:
            NotFound: the list is empty.
        """
        which = ", ".join(str(part) for part in (path or {}).values())
        try:
            found = await self.read(operation, key, kind, path, query)
        except NotFound as error:
            if which in error.words:
                raise
            words = f"there is no {which!r}: {error.words}"
            raise NotFound(
                operation, words, status=error.status, problems=error.problems
            ) from error
        if not found:
            raise NotFound(operation, f"there is no {which!r}")
        return found[0]

    async def read_field(self, operation: str, key: str, kind: type[V]) -> V:
        """Read an answer that has one object under a name."""
        body = await self.caller.call(operation, user=self.user)
        raw = reading.decode(body, dict[str, msgspec.Raw]).get(key)
        found, _ = reading.one(bytes(raw) if raw is not None else b"{}", kind)
        return kind() if found is None else found

    async def write(
        self,
        operation: str,
        path: Mapping[str, str | int] | None = None,
        query: Mapping[str, Value] | None = None,
        body: Mapping[str, object] | None = None,
        *,
        written: tuple[str, str] | None = None,
    ) -> tuple[bytes, Outcome]:
        """Perform a change; return the answer. `written` is what has changed, for those who keep a picture of it."""
        content = writing.encode(body) if body is not None else None
        answer = await self.caller.call(operation, path, query, content, user=self.user)
        if written:
            await self.tell(*written)
        said = reading.decode(answer, Answer) if answer else Answer()
        return answer, Outcome(tuple(said.warnings or ()))

    async def tell(self, key: str, name: str) -> None:
        """Tell those who keep a picture that an object has changed."""
        for hear in tuple(self.on_write):
            await hear(key, name)

    async def raw(
        self,
        operation: str,
        path: Mapping[str, str | int],
        query: Mapping[str, Value],
        body: object,
    ) -> dict[str, Any]:
        """Perform an operation, JSON in and out."""
        content = None if body is None else msgspec.json.encode(body)
        answer = await self.caller.call(operation, path, query, content, user=self.user)
        return reading.decode(answer, dict[str, Any]) if answer else {}
