"""Inputs by the batch: whole ones, spoilt ones, and what is odd in any format."""

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from bridge.domain.model import identities
from bridge.domain.model.identities import FirstSubmission, Identity
from slurmruntime.values.ids import ClusterId, PodUid, WorkloadKey

INPUTS = 10_000
AT_ONCE = 10
fuzzed = settings(
    max_examples=INPUTS // AT_ONCE,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
ODD = (
    *(
        "",
        " ",
        "\n",
        "\x00",
        "\x7f",
        "ü",
        "٣",
        "²",
        "\u200b",
        "\ud7ff",
        "😀",
        "-0",
        "null",
        "1e999",
    ),
    *(
        "1" * 5000,
        "9" * 30,
        "{" * 2000,
        "[" * 2000,
        "\\",
        "\\u0000",
        "'",
        '"',
        ";",
        "$",
        "`",
        "%s",
        "../",
    ),
)
_JSON_VALUES: tuple[Any, ...] = (
    *(None, True, False, [], {}, "", "x", "x" * 3000, [[]], {"set": True}, ["x"], [None]),
    *(
        0,
        -1,
        1,
        7,
        2**31,
        2**63,
        -(2**63),
        10**30,
        0.5,
        1e300,
        -1e300,
        "7",
        "7_1",
        "\ud7ff",
        "node[1-9999999]",
    ),
)


def batches(longest: int) -> st.SearchStrategy[list[bytes]]:
    """Several inputs at once: most of the time goes into drawing, and that is done once for all of them."""
    size = longest + 1
    return st.binary(min_size=AT_ONCE * size, max_size=AT_ONCE * size).map(
        lambda data: [
            data[start + 1 : start + 1 + data[start] % size] for start in range(0, len(data), size)
        ]
    )


def joined(data: bytes, known: tuple[str, ...]) -> str:
    """A byte is a piece: cheap to draw, and it shrinks well."""
    choices = (*known, *known, *ODD)
    return "".join(choices[byte % len(choices)] for byte in data)


def spoilt(good: Any, data: bytes) -> Any:
    """In a good document one to six parts are something else, or gone: two bytes say where and what."""
    values = len(_JSON_VALUES)
    changes = [
        (where, _JSON_VALUES[what % values], what >= 8 * values)
        for where, what in zip(data[::2], data[1::2], strict=False)
    ]
    return _spoil(good, changes)


def _spoil(good: Any, changes: list[tuple[int, Any, bool]]) -> Any:
    document = json.loads(json.dumps(good))
    for number, value, is_gone in changes:
        places = list(_places(document))
        if places:
            holder, key = places[number % len(places)]
            if is_gone:
                del holder[key]
            else:
                holder[key] = copy.deepcopy(value)
    return document


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every part of it, as who holds it under which key."""
    keys = (
        list(document)
        if isinstance(document, dict)
        else range(len(document))
        if isinstance(document, list)
        else ()
    )
    for key in keys:
        yield document, key
        yield from _places(document[key])


# -- what users write -----------------------------------------------------------------------------


IDENTITY = Identity(
    cluster=ClusterId("c"),
    kind="Pod",
    namespace="n",
    name="p",
    key=WorkloadKey("u"),
    pods=(PodUid("u"),),
    cause="misfit",
    limit_min=1,
    extended_min=2,
    frozen=FirstSubmission(
        requester="alice", rule="r", user="alice", account="a", asked={"timelimit": "5"}
    ),
)
COMMENT = json.loads(identities.encode(IDENTITY))


def document(good: Any, data: bytes, known: tuple[str, ...]) -> str:
    """Three times of four a spoilt one, else text of its pieces."""
    if data and data[0] % 4:
        return json.dumps(spoilt(good, data[1:]))
    return joined(data[1:], known)
