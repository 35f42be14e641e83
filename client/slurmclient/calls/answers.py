"""What an answer means."""

import contextlib

from slurmclient.errors import Malformed, Problem, Rejected, SlurmError, classify
from slurmclient.transport.exchange import Reply
from slurmclient.transport.failover import OK
from slurmclient.wire import reading


def check(operation: str, reply: Reply) -> None:
    """Look for `errors` in an answer that is 200.

    Raises:
        SlurmError: there are some, or it is no answer of Slurm's.
    """
    answer = parsed(operation, reply, reading.Answer)
    if answer.errors:
        raise refusal(operation, reply.status, answer)


def listing(
    operation: str, body: bytes, key: str, kind: type[reading.T]
) -> reading.Listing[reading.T]:
    """Read the list of an answer; one without a list has none.

    Raises:
        SlurmError: the answer has `errors`, or is no answer of Slurm's.
    """
    try:
        found, answer = reading.listing(body, key, kind)
    except reading.UNREADABLE as error:
        start = body[:80].decode(errors="replace")
        raise Malformed(operation, f"{error}, in an answer that starts {start!r}") from error
    if answer.errors:
        raise refusal(operation, OK, answer)
    return found


def refuse(operation: str, reply: Reply) -> None:
    """Raise what an answer other than 200 means.

    Raises:
        SlurmError: always.
    """
    try:
        answer = reading.decode(reply.body, reading.Answer)
    except reading.UNREADABLE:
        # Text of slurmrestd's own, or the page of a proxy: what it says does not matter to the classification.
        words = reply.body[:200].decode(errors="replace").strip() or "no body"
        kind = classify(operation, reply.status, None)
        raise kind(operation, words, status=reply.status) from None
    raise refusal(operation, reply.status, answer)


def refusal(operation: str, status: int | None, answer: reading.Answer) -> SlurmError:
    """Return the error that an answer's `errors` are."""
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


def parsed(operation: str, reply: Reply, kind: type[reading.T]) -> reading.T:
    try:
        return reading.decode(reply.body, kind)
    except reading.UNREADABLE as error:
        with contextlib.suppress(*reading.UNREADABLE):
            return reading.decode(reply.body.decode(errors="replace").encode(), kind)
        start = reply.body[:80].decode(errors="replace")
        words = f"{error}, in an answer that starts {start!r}"
        raise Malformed(operation, words, status=reply.status) from error


def refused(operation: str, number: int, words: str) -> Exception:
    """Return the error for one object among several of an answer."""
    problem = Problem(error_number=number, error=words)
    return classify(operation, None, number)(operation, words, problems=(problem,))
