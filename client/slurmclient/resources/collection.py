"""Objects of one kind."""

from collections.abc import AsyncIterator
from typing import Any, Generic, TypeVar, overload

from msgspec import Struct

from slurmclient.api.operation import Value
from slurmclient.calls import streaming
from slurmclient.calls.speaker import Outcome, Speaker
from slurmclient.wire.reading import Listing

M = TypeVar("M", bound=Struct)


V = TypeVar("V", bound=Struct)


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
        return streaming.objects(
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
