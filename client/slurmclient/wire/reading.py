"""slurmrestd's JSON, read into structs: numbers that may be absent, moments, and objects that are odd.

slurmrestd says a number that may be absent as `{"set", "infinite", "number"}` and a moment as seconds since 1970. Here they
are `Number` and `Time`: None, a number or `math.inf`; None or a `datetime` in UTC.

One odd object costs only itself. Where an answer does not decode, each of its objects is decoded alone; where one of these
does not, each of its fields is, and a field that makes no sense keeps its default and is told in `Listing.odd`. A byte
that is no UTF-8, which Slurm accepts in a job's name, is read as U+FFFD.
"""

import contextlib
import functools
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import Raw, Struct

from slurmclient.errors import Problem, Remark
from slurmclient.wire.values import Time, dec_hook

T = TypeVar("T")


_NOTHING: Final[tuple["Odd", ...]] = ()


UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Model(Struct, frozen=True, gc=False):
    """What is read from Slurm. A view is a struct of yours with some of a model's fields: only these are decoded.

    class Row(Model, frozen=True):
        job_id: int
        user_name: str = ""
        start_time: Time = None
    """


class Odd(Struct, frozen=True):
    """A field, or a whole object, that could not be read."""

    index: int
    """Of the object in its list."""
    field: str
    """"": the object as a whole; it is not in the list."""
    why: str


class Listing(list[T]):
    """What a list was answered with: a list, and what could not be read."""

    def __init__(
        self,
        items: Iterable[T] = (),
        *,
        odd: tuple[Odd, ...] = (),
        warnings: tuple[Remark, ...] = (),
        updated_at: datetime | None = None,
    ) -> None:
        """Keep the items.

        Args:
            items: The objects.
            odd: What could not be read.
            warnings: Slurm's words about the answer.
            updated_at: When Slurm last changed one of them, by its own clock, where it says so.
        """
        super().__init__(items)
        self.odd = odd
        self.warnings = warnings
        self.updated_at = updated_at


class Answer(Struct, frozen=True):
    """What every answer may have. `job_id` is here because a refusal that has one was none."""

    errors: list[Problem] | None = None
    warnings: list[Remark] | None = None
    job_id: int | None = None


def decode(body: bytes, kind: type[T]) -> T:
    """Read one struct.

    Raises:
        msgspec.MsgspecError: it is not what it should be.
    """
    return cast("T", _decoder(cast("Any", kind)).decode(body))


def convert(value: object, kind: type[T]) -> T:
    """Make a struct of what has been parsed already.

    Raises:
        msgspec.ValidationError: it is not what it should be.
    """
    return msgspec.convert(value, kind, dec_hook=dec_hook)


def listing(body: bytes, key: str, kind: type[T]) -> tuple[Listing[T], Answer]:
    """Read the list of an answer, `key` being its name there, and what else every answer may have.

    Raises:
        msgspec.MsgspecError: this is no answer of Slurm's.
    """
    try:
        found = _decoder(_envelope(key, cast("Any", kind))).decode(body)
        items, odd = found.items, _NOTHING
    except UNREADABLE:
        found = _decoder(_envelope(key, Raw)).decode(body.decode(errors="replace").encode())
        read = [one(bytes(raw), kind, index) for index, raw in enumerate(found.items or ())]
        items = [item for item, _ in read if item is not None]
        odd = tuple(odd for _, odds in read for odd in odds)
    warnings = tuple(found.warnings or ())
    listed = Listing(items or (), odd=odd, warnings=warnings, updated_at=found.last_update)
    return listed, Answer(errors=found.errors, warnings=found.warnings)


def one(body: bytes, kind: type[T], index: int = 0) -> tuple[T | None, tuple[Odd, ...]]:
    """Read an object field by field where it is odd; None if even that fails."""
    with contextlib.suppress(*UNREADABLE):
        return decode(body, kind), ()
    clean = body.decode(errors="replace").encode()
    with contextlib.suppress(*UNREADABLE):
        return decode(clean, kind), ()
    try:
        fields = msgspec.json.decode(clean)
    except UNREADABLE as error:
        return None, (Odd(index, "", str(error)),)
    return _by_fields(fields, kind, index)


def _by_fields(fields: object, kind: type[T], index: int) -> tuple[T | None, tuple[Odd, ...]]:
    if not isinstance(fields, dict):
        return None, (Odd(index, "", f"expected an object, got {type(fields).__name__}"),)
    odd = []
    good = {}
    for name, wire_name, type_ in _fields(cast("Any", kind)):
        if fields.get(wire_name) is None:  # null, where a list or an object is meant
            continue
        try:
            good[name] = convert(fields[wire_name], type_)
        except UNREADABLE as error:
            odd.append(Odd(index, name, str(error)))
    try:
        return kind(**good), tuple(odd)
    except TypeError as error:  # a field that the view cannot do without
        return None, (*odd, Odd(index, "", str(error)))


@functools.lru_cache(maxsize=512)
def _fields(kind: Any) -> tuple[tuple[str, str, Any], ...]:
    return tuple((one.name, one.encode_name, one.type) for one in msgspec.structs.fields(kind))


@functools.lru_cache(maxsize=512)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind, dec_hook=dec_hook)


@functools.lru_cache(maxsize=512)
def _envelope(key: str, kind: Any) -> Any:
    return msgspec.defstruct(
        "Envelope",
        [
            ("items", list[kind] | None, msgspec.field(name=key, default=None)),
            ("errors", list[Problem] | None, None),
            ("warnings", list[Remark] | None, None),
            ("last_update", Time, None),
        ],
        frozen=True,
    )
