"""Turning answers into lists, or into the errors they stand for."""

import contextlib
from typing import NoReturn, TypeVar

from slurmclient.errors import Malformed, Problem, Rejected, SlurmError, classify
from slurmclient.transport.exchange import OK, Reply
from slurmclient.wire import reading
from slurmclient.wire.reading import Answer, Listing, T

A = TypeVar("A", bound=Answer)


def decode(operation: str, body: bytes, kind: type[A]) -> A:
    """Decode the body of an answer with status 200; raise its `errors`, or Malformed."""
    answer = parse(operation, body, kind)
    if answer.errors:
        raise refusal(operation, OK, answer)
    return answer


def listing(operation: str, body: bytes, key: str, kind: type[T]) -> Listing[T]:
    """Decode the list named `key`, empty if missing or null, of an answer with status 200; raise like `decode`."""
    try:
        objects, answer = reading.listing(body, key, kind)
    except reading.UNREADABLE as error:
        raise Malformed(operation, _unexpected(body, error)) from error
    if answer.errors:
        raise refusal(operation, OK, answer)
    return objects


def refuse(operation: str, reply: Reply) -> NoReturn:
    """Raise the SlurmError that an answer with another status than 200 stands for."""
    try:
        answer = parse(operation, reply.body, Answer)
    except Malformed:
        # Plain text of slurmrestd's or the page of a proxy: only the status classifies it.
        words = reply.body[:200].decode(errors="replace").strip() or "no body"
        kind = classify(operation, reply.status, None)
        raise kind(operation, words, status=reply.status) from None
    raise refusal(operation, reply.status, answer)


def refusal(operation: str, status: int | None, answer: Answer) -> SlurmError:
    """Return the error that an answer's `errors` stand for; the first one classifies it."""
    problems = tuple(answer.errors or ())
    first = problems[0] if problems else None
    if first is None:
        words = "no reason given"
    elif first.error_number and first.error and first.error != first.description:
        words = f"{first.error}: {first.description}" if first.description else first.error
    else:
        words = first.description or first.error
    kind = classify(operation, status, first.error_number if first else None)
    error = kind(
        operation, words, status=status, problems=problems, warnings=tuple(answer.warnings or ())
    )
    if isinstance(error, Rejected):
        error.job_id = answer.job_id
    return error


def object_error(operation: str, number: int, words: str) -> SlurmError:
    """Return the error for one object of an answer that reports on several; `words` name it."""
    problem = Problem(error_number=number, error=words)
    return classify(operation, None, number)(operation, words, problems=(problem,))


def parse(operation: str, body: bytes, kind: type[T]) -> T:
    """Decode a body, if need be without the bytes that JSON does not allow; raise Malformed."""
    try:
        return reading.decode(body, kind)
    except reading.UNREADABLE as error:
        with contextlib.suppress(*reading.UNREADABLE):
            return reading.decode(reading.repaired(body), kind)
        raise Malformed(operation, _unexpected(body, error), status=OK) from error


def _unexpected(body: bytes, error: Exception) -> str:
    return f"{error}, in a response that starts {body[:80].decode(errors='replace')!r}"
