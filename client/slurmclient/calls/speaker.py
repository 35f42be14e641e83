"""Operations as one user: what resources are built on."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, overload

import msgspec
from msgspec import Struct

from slurmclient.api.operation import Value
from slurmclient.calls import caller as calls
from slurmclient.calls.caller import Caller
from slurmclient.errors import NotFound, Problem, Remark, classify
from slurmclient.wire import reading as wire
from slurmclient.wire import splitting as stream
from slurmclient.wire.reading import Answer, Listing

M = TypeVar("M", bound=Struct)
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
        return calls.listing(operation, body, key, kind) if body else None

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
        raw = wire.decode(body, dict[str, msgspec.Raw]).get(key)
        found, _ = wire.one(bytes(raw) if raw is not None else b"{}", kind)
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
        content = wire.encode(body) if body is not None else None
        answer = await self.caller.call(operation, path, query, content, user=self.user)
        if written:
            await self.tell(*written)
        said = wire.decode(answer, Answer) if answer else Answer()
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
        return wire.decode(answer, dict[str, Any]) if answer else {}


class Collection(Generic[M]):
    """Objects of one kind: `list`, `iter`, and `get` by name."""

    def __init__(
        self,
        speaker: Speaker,
        kind: type[M],
        key: str,
        *,
        lists: str,
        gets: str = "",
        parameter: str = "",
    ) -> None:
        """Say where they are.

        Args:
            speaker: As whom.
            kind: What they are read into, unless `as_` says otherwise.
            key: The name of their list in an answer.
            lists: The operation that lists them.
            gets: The one that reads one; "": there is none.
            parameter: Of the latter's path.
        """
        self._speaker = speaker
        self._kind = kind
        self._key = key
        self._lists = lists
        self._gets = gets
        self._parameter = parameter

    @overload
    async def list(self, **query: Value) -> Listing[M]: ...
    @overload
    async def list(self, *, as_: type[V], **query: Value) -> Listing[V]: ...
    async def list(self, *, as_: Any = None, **query: Value) -> Any:
        """Read them all.

        Args:
            as_: A struct with the fields you need: decoding only these is several times cheaper.
            query: Parameters of Slurm's, as `user` or `flags`; an unknown one is a TypeError that names those there are.
        """
        found = await self._speaker.read(self._lists, self._key, as_ or self._kind, query=query)
        return Listing() if found is None else found

    @overload
    def iter(self, **query: Value) -> AsyncIterator[M]: ...
    @overload
    def iter(self, *, as_: type[V], **query: Value) -> AsyncIterator[V]: ...
    def iter(self, *, as_: Any = None, **query: Value) -> Any:
        """Read them one by one while the answer comes: a long list is never in memory as a whole. Arguments as of `list`."""
        return stream.objects(
            self._speaker.caller,
            self._lists,
            self._key,
            as_ or self._kind,
            query,
            user=self._speaker.user,
        )

    @overload
    async def get(self, name: str | int, **query: Value) -> M: ...
    @overload
    async def get(self, name: str | int, *, as_: type[V], **query: Value) -> V: ...
    async def get(self, name: str | int, *, as_: Any = None, **query: Value) -> Any:
        """Read one.

        Raises:
            NotFound: there is none of this name.
            TypeError: Slurm can only be asked for all of them.
        """
        if not self._gets:
            raise TypeError(f"Slurm cannot be asked for one of the {self._key}: list them")
        return await self._speaker.read_one(
            self._gets, self._key, as_ or self._kind, {self._parameter: name}, query
        )

    async def list_if_changed(self, since: object, *, as_: type[V]) -> Listing[V] | None:
        """`list`, where Slurm can say that nothing has changed since a listing's `updated_at`: None."""
        return await self._speaker.read(
            self._lists,
            self._key,
            as_,
            query={"update_time": since},  # type: ignore[dict-item]  # a datetime or None
        )

    async def _write(self, operation: str, name: object, /, **body: object) -> Outcome:
        """Change the object of this name."""
        path = {self._parameter: str(name)} if name else {}
        _, outcome = await self._speaker.write(
            operation, path, body=body or None, written=(self._key, str(name))
        )
        return outcome


def refused(operation: str, number: int, words: str) -> Exception:
    """Return the error for one object among several of an answer."""
    problem = Problem(error_number=number, error=words)
    return classify(operation, None, number)(operation, words, problems=(problem,))
