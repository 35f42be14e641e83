"""Reading the objects of a long list while the answer arrives."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final

import msgspec
from aiohttp import ClientResponse

from slurmclient.api.operation import Value
from slurmclient.calls import answers
from slurmclient.calls.caller import Caller
from slurmclient.errors import Malformed
from slurmclient.transport.exchange import OK
from slurmclient.wire import reading
from slurmclient.wire.reading import Odd
from slurmclient.wire.splitting import Splitter

_PIECE: Final = 1 << 18
"""Bytes to take from the connection at a time."""
_MOST_ODD: Final = 1000
_log: Final = logging.getLogger("slurmclient")


class Stream(AsyncIterator[reading.T]):
    """The objects of a list, one by one.

    An answer that is incomplete, or has `errors` after its list, raises after its objects were
    yielded.
    """

    def __init__(
        self,
        caller: Caller,
        operation: str,
        key: str,
        kind: type[reading.T],
        query: Mapping[str, Value],
        *,
        user: str,
        timeout_s: float | None = None,
    ) -> None:
        """Send nothing yet; `timeout_s` is the deadline for each piece of the answer, None for the client's."""
        self.odd: list[Odd] = []
        """The fields and objects that could not be decoded so far, the first 1000 of them."""
        self.left_out = 0
        """How many objects were left out so far; a warning about them is logged at the end."""
        self._operation = operation
        self._index = 0
        opened = caller.stream(operation, query, user=user, timeout_s=timeout_s)
        self._objects = self._read(opened, key, kind)

    async def __anext__(self) -> reading.T:
        return await anext(self._objects)

    async def aclose(self) -> None:
        """Stop reading."""
        await self._objects.aclose()

    async def _read(
        self, opened: AbstractAsyncContextManager[ClientResponse], key: str, kind: type[reading.T]
    ) -> AsyncGenerator[reading.T, None]:
        splitter = Splitter(self._operation, key)
        try:
            async with opened as response:
                async for piece in response.content.iter_chunked(_PIECE):
                    for item in self._decoded(splitter.feed(piece), kind):
                        yield item
        finally:
            if self.left_out:
                first = next(odd for odd in self.odd if not odd.field)
                _log.warning(
                    "%s: %d objects are left out; the first is number %d: %s",
                    *(self._operation, self.left_out, first.index, first.why),
                )
        _check(self._operation, splitter.around)

    def _decoded(self, bodies: Iterable[bytes], kind: type[reading.T]) -> Iterator[reading.T]:
        for body in bodies:
            item, odd = reading.one(body, kind, self._index)
            self._index += 1
            if len(self.odd) < _MOST_ODD or (item is None and not self.left_out):
                self.odd += odd
            if item is None:
                self.left_out += 1
            else:
                yield item


def _check(operation: str, envelope: bytes) -> None:
    try:
        answer = reading.decode(reading.repaired(envelope), reading.Answer)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Malformed(operation, f"the answer is incomplete: {error}") from error
    if answer.errors:
        raise answers.refusal(operation, OK, answer)
