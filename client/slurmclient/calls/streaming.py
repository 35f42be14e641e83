"""The objects of a long list while the answer comes."""

from collections.abc import AsyncIterator, Mapping
from typing import Final

import msgspec

from slurmclient.api.operation import Value
from slurmclient.calls import answers
from slurmclient.calls.caller import Caller
from slurmclient.errors import Malformed
from slurmclient.transport.failover import OK
from slurmclient.wire import reading
from slurmclient.wire.splitting import Splitter

_PIECE: Final = 1 << 18


async def objects(
    caller: Caller,
    operation: str,
    key: str,
    kind: type[reading.T],
    query: Mapping[str, Value],
    *,
    user: str,
) -> AsyncIterator[reading.T]:
    """Read the objects of a list; one that cannot be read at all is left out.

    Raises:
        SlurmError: the answer has `errors`, or broke off.
    """
    splitter = Splitter(operation, key)
    index = 0
    async with caller.stream(operation, query, user=user) as response:
        async for piece in response.content.iter_chunked(_PIECE):
            for found in splitter.feed(piece):
                item, _ = reading.one(found, kind, index)
                index += 1
                if item is not None:
                    yield item
    if splitter.before:
        envelope = splitter.before + (splitter.rest if splitter.is_done else b"")
    else:
        envelope = splitter.rest  # no list: an error, or an object that is null
    _check(operation, envelope)


def _check(operation: str, envelope: bytes) -> None:
    """Look for `errors` in what stood around the list; an answer without an end is none.

    Raises:
        SlurmError: there are some.
    """
    try:
        answer = reading.decode(envelope.decode(errors="replace").encode(), reading.Answer)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Malformed(operation, f"the answer broke off: {error}") from error
    if answer.errors:
        raise answers.refusal(operation, OK, answer)
