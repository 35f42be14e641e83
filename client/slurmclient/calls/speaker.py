"""Operations as one user, with typed answers; the resources are built on them."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import Raw, Struct

from slurmclient.api.operation import Value
from slurmclient.calls import answers
from slurmclient.calls.answers import A
from slurmclient.calls.caller import Caller
from slurmclient.errors import Malformed, NotFound, Remark
from slurmclient.wire import reading, writing
from slurmclient.wire.reading import Answer, Listing

V = TypeVar("V", bound=Struct)

OnWrite: TypeAlias = Callable[[str, str], Awaitable[None]]
"""Awaited after a change and before the call returns.

The arguments are the name of the list, such as `jobs`, and the name of the changed object.
"""


class Outcome(Struct, frozen=True):
    """The answer to a change that Slurm has accepted."""

    warnings: tuple[Remark, ...] = ()
    """Read them: some report a field that Slurm has ignored."""


@dataclass(frozen=True, kw_only=True)
class Speaker:
    """Performs operations as one user. Any method may raise `SlurmError`."""

    caller: Caller
    user: str
    """The user to act as, by name or uid; "" for the token's own."""
    on_write: list[OnWrite] = field(default_factory=list)

    async def read(
        self,
        operation: str,
        key: str,
        kind: type[V],
        path: Mapping[str, str | int] | None = None,
        query: Mapping[str, Value] | None = None,
    ) -> Listing[V] | None:
        """Read the list named `key`; None if nothing has changed since the query's `update_time`."""
        return await self.caller.perform(
            operation,
            path,
            query,
            user=self.user,
            read=lambda body: answers.listing(operation, body, key, kind),
        )

    async def call(
        self,
        _label: str,
        operation: str,
        *,
        answer: type[A],
        query: Mapping[str, Value] | None = None,
    ) -> A:
        """Read a whole answer into a struct that is derived from `Answer`."""
        read = await self.caller.perform(
            operation,
            query=query,
            user=self.user,
            read=lambda body: answers.decode(operation, body, answer),
        )
        if read is None:
            raise Malformed(operation, "the answer to an unconditional read has no body")
        return read

    async def read_all(
        self,
        operation: str,
        key: str,
        kind: type[V],
        path: Mapping[str, str | int] | None = None,
        query: Mapping[str, Value] | None = None,
    ) -> Listing[V]:
        """Read the list named `key`; empty if nothing has changed since an `update_time`."""
        objects = await self.read(operation, key, kind, path, query)
        return Listing() if objects is None else objects

    async def read_one(
        self,
        operation: str,
        key: str,
        kind: type[V],
        path: Mapping[str, str | int] | None = None,
        query: Mapping[str, Value] | None = None,
    ) -> V:
        """Read the first object of the list named `key`.

        Raises:
            NotFound: If the list is empty.
            Malformed: If the object cannot be decoded.
        """
        which = ", ".join(str(part) for part in (path or {}).values())
        try:
            objects = await self.read_all(operation, key, kind, path, query)
        except NotFound as error:
            if which in error.words:
                raise
            words = f"there is no {which!r}: {error.words}"
            raise NotFound(
                operation, words, status=error.status, problems=error.problems
            ) from error
        if objects:
            return objects[0]
        if objects.odd:
            raise Malformed(operation, f"cannot decode {which!r}: {objects.odd[0].why}")
        raise NotFound(operation, f"there is no {which!r}")

    async def read_field(self, operation: str, key: str, kind: type[V]) -> V:
        """Read the object named `key`, without its invalid fields; raise Malformed if there is none."""
        body = await self.caller.call(operation, user=self.user)
        raw = answers.parse(operation, body, dict[str, Raw]).get(key, Raw(b"null"))
        value, odd = reading.one(bytes(raw), kind)
        if value is None:
            raise Malformed(operation, f"cannot decode {key!r}: {odd[0].why}")
        return value

    async def write(
        self,
        operation: str,
        path: Mapping[str, str | int] | None = None,
        query: Mapping[str, Value] | None = None,
        body: Mapping[str, object] | None = None,
        *,
        written: tuple[str, str] | None = None,
    ) -> tuple[bytes, Outcome]:
        """Perform a change; return the answer's JSON and its warnings.

        Args:
            body: The request's fields, as `writing.encode` takes them.
            written: The list and the name of the changed object, for the listeners.
        """
        content = writing.encode(body) if body is not None else None
        answer = await self.caller.call(operation, path, query, content, user=self.user)
        if written:
            await self.notify(*written)
        parsed = answers.parse(operation, answer, Answer) if answer else Answer()
        return answer, Outcome(tuple(parsed.warnings or ()))

    async def notify(self, key: str, name: str) -> None:
        """Notify the caches that this client has changed an object."""
        for listener in tuple(self.on_write):
            await listener(key, name)

    async def raw(
        self,
        operation: str,
        path: Mapping[str, str | int],
        query: Mapping[str, Value],
        body: object,
    ) -> dict[str, Any]:
        """Perform an operation, JSON in and out; `{}` for HTTP 304."""
        content = None if body is None else msgspec.json.encode(body)
        answer = await self.caller.call(operation, path, query, content, user=self.user)
        return answers.parse(operation, answer, dict[str, Any]) if answer else {}
