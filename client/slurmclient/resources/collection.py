"""Objects of one kind: `list`, `iter`, and `get` by name."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar, overload

from msgspec import Struct

from slurmclient.api.operation import Value
from slurmclient.calls.speaker import Outcome, Speaker, V
from slurmclient.calls.streaming import Stream
from slurmclient.wire.reading import Listing

M = TypeVar("M", bound=Struct)


class Collection(Generic[M]):
    """Objects of one kind, to be listed and read. Any method may raise `SlurmError`."""

    _service = "slurm"
    """The beginning of its operations' names."""

    def __init__(
        self,
        speaker: Speaker,
        kind: type[M],
        key: str,
        *,
        one: str = "",
        parameter: str = "",
    ) -> None:
        """Describe where the objects are.

        Args:
            kind: Their type, unless `as_` names another.
            key: The name of their list: `jobs` in an answer to `slurm_get_jobs`.
            one: The name of one of them: `job` in `slurm_get_job`; "" if Slurm can only list them.
            parameter: The parameter of that operation's path.
        """
        self._speaker = speaker
        self._kind = kind
        self._key = key
        self._one = one
        self._lists = f"{self._service}_get_{key.lower()}"
        self._gets = f"{self._service}_get_{one}"
        self._parameter = parameter

    @overload
    async def list(self, **query: Value) -> Listing[M]: ...
    @overload
    async def list(self, *, as_: type[V], **query: Value) -> Listing[V]: ...
    async def list(self, *, as_: Any = None, **query: Value) -> object:
        """Read all objects.

        Args:
            as_: A struct with the fields that you need; decoding fewer fields is several times
                faster.
            query: Slurm's query parameters.

        Raises:
            TypeError: If Slurm has no such parameter; the message names those that exist.
        """
        return await self._speaker.read_all(self._lists, self._key, as_ or self._kind, query=query)

    @overload
    def iter(self, *, timeout_s: float | None = None, **query: Value) -> Stream[M]: ...
    @overload
    def iter(
        self, *, as_: type[V], timeout_s: float | None = None, **query: Value
    ) -> Stream[V]: ...
    def iter(self, *, as_: Any = None, timeout_s: float | None = None, **query: Value) -> object:
        """Yield all objects while the answer arrives, so that it is never completely in memory.

        An object without a required field is left out: the stream's `left_out` counts them, `odd`
        says why, and a warning is logged. An incomplete answer raises after the objects that did
        arrive.

        Args:
            timeout_s: The deadline for the first piece of the answer, and for each that follows;
                None for the client's. slurmrestd makes the whole list before it sends any of it.
        """
        return Stream(
            self._speaker.caller,
            self._lists,
            self._key,
            as_ or self._kind,
            query,
            user=self._speaker.user,
            timeout_s=timeout_s,
        )

    @overload
    async def get(self, name: str | int, **query: Value) -> M: ...
    @overload
    async def get(self, name: str | int, *, as_: type[V], **query: Value) -> V: ...
    async def get(self, name: str | int, *, as_: Any = None, **query: Value) -> object:
        """Read one object.

        Args:
            name: Its name, or a job's id.
            as_: A struct with the fields that you need.

        Raises:
            NotFound: If there is no object with this name.
            TypeError: If Slurm can only list these objects, or has no such parameter.
        """
        if not self._one:
            raise TypeError(f"Slurm cannot read one of the {self._key} by name: list them")
        return await self._read(name, as_ or self._kind, query)

    async def _read(self, name: str | int, kind: type[V], query: Mapping[str, Value]) -> V:
        path = {self._parameter: name}
        return await self._speaker.read_one(self._gets, self._key, kind, path, query)

    async def list_if_changed(
        self, since: datetime | None, *, as_: type[V], **query: Value
    ) -> Listing[V] | None:
        """Read all objects, unless none has changed.

        Args:
            since: The `updated_at` of an earlier listing, by Slurm's clock; None to read anyway.

        Returns:
            All objects; None if none has changed since (HTTP 304).

        Raises:
            TypeError: If this operation has no `update_time`, or another parameter is unknown.
        """
        return await self._speaker.read(
            self._lists, self._key, as_, query={**query, "update_time": since}
        )

    async def _write(self, operation: str, name: str | int, /, **body: object) -> Outcome:
        _, outcome = await self._speaker.write(
            operation,
            {self._parameter: str(name)},
            body=body or None,
            written=(self._key, str(name)),
        )
        return outcome
