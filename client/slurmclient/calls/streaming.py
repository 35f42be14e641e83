"""Reading the objects of a long list while the answer arrives."""

from collections.abc import AsyncIterator, Mapping
from typing import Final

import msgspec

from slurmclient.api.operation import Value
from slurmclient.calls import answers
from slurmclient.calls.caller import Caller
from slurmclient.errors import Malformed
from slurmclient.transport.exchange import OK
from slurmclient.wire import reading
from slurmclient.wire.splitting import Splitter

_PIECE: Final = 1 << 18
"""Bytes to take from the connection at a time."""


async def objects(
    caller: Caller,
    operation: str,
    key: str,
    kind: type[reading.T],
    query: Mapping[str, Value],
    *,
    user: str,
) -> AsyncIterator[reading.T]:
    """Yield the objects of a list one by one.

    An invalid field keeps its default; an object without a required field is left out.

    Args:
        caller: Performs the operation.
        operation: The operation that lists the objects.
        key: The list's name in the answer.
        kind: The type of the objects.
        query: Query parameters by their names in the table of operations.
        user: The user to act as; "" for the token's own.

    Raises:
        SlurmError: As `slurmclient.errors` classifies it. An answer that is incomplete, or has
            `errors` after its list, raises after its objects were yielded.
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
        envelope = splitter.rest  # no list: an error, or a list that is null
    _check(operation, envelope)


def _check(operation: str, envelope: bytes) -> None:
    """Raise the `errors` found around the list.

    Raises:
        SlurmError: If there are errors, or the answer is incomplete.
    """
    try:
        answer = reading.decode(envelope.decode(errors="replace").encode(), reading.Answer)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Malformed(operation, f"the answer is incomplete: {error}") from error
    if answer.errors:
        raise answers.refusal(operation, OK, answer)
