"""slurmrestd's JSON, read into structs: numbers that may be absent, moments, and objects that are odd.

slurmrestd says a number that may be absent as `{"set", "infinite", "number"}` and a moment as seconds since 1970. Here they
are `Number` and `Time`: None, a number or `math.inf`; None or a `datetime` in UTC.

One odd object costs only itself. Where an answer does not decode, each of its objects is decoded alone; where one of these
does not, each of its fields is, and a field that makes no sense keeps its default and is told in `Listing.odd`. A byte
that is no UTF-8, which Slurm accepts in a job's name, is read as U+FFFD.
"""

import contextlib
import functools
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

import msgspec
from msgspec import Raw, Struct

from slurmclient.errors import Problem, Remark

T = TypeVar("T")

_NOTHING: Final[tuple["Odd", ...]] = ()
_UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _Anything(type):
    """What a reader returns need not be of the marker's own type."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


if TYPE_CHECKING:
    Number: TypeAlias = int | float | None
    Time: TypeAlias = datetime | None
else:

    class Number(metaclass=_Anything):
        """A number; None if it is not set, `math.inf` if it has no limit."""

    class Time(metaclass=_Anything):
        """A moment in UTC; None if it is not set, or 0."""


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
    return msgspec.convert(value, kind, dec_hook=_read)


def listing(body: bytes, key: str, kind: type[T]) -> tuple[Listing[T], Answer]:
    """Read the list of an answer, `key` being its name there, and what else every answer may have.

    Raises:
        msgspec.MsgspecError: this is no answer of Slurm's.
    """
    try:
        found = _decoder(_envelope(key, cast("Any", kind))).decode(body)
        items, odd = found.items, _NOTHING
    except _UNREADABLE:
        found = _decoder(_envelope(key, Raw)).decode(body.decode(errors="replace").encode())
        read = [one(bytes(raw), kind, index) for index, raw in enumerate(found.items or ())]
        items = [item for item, _ in read if item is not None]
        odd = tuple(odd for _, odds in read for odd in odds)
    warnings = tuple(found.warnings or ())
    listed = Listing(items or (), odd=odd, warnings=warnings, updated_at=found.last_update)
    return listed, Answer(errors=found.errors, warnings=found.warnings)


def one(body: bytes, kind: type[T], index: int = 0) -> tuple[T | None, tuple[Odd, ...]]:
    """Read an object field by field where it is odd; None if even that fails."""
    with contextlib.suppress(*_UNREADABLE):
        return decode(body, kind), ()
    clean = body.decode(errors="replace").encode()
    with contextlib.suppress(*_UNREADABLE):
        return decode(clean, kind), ()
    try:
        fields = msgspec.json.decode(clean)
    except _UNREADABLE as error:
        return None, (Odd(index, "", str(error)),)
    return _by_fields(fields, kind, index)


def number(value: object) -> Number:
    """Read a number as slurmrestd writes it.

    Raises:
        ValueError: it is none.
    """
    if type(value) is dict:  # thousands of times a list: a match statement takes twice as long
        if value.get("infinite"):
            return math.inf
        if not value.get("set", True):
            return None
        value = value.get("number")
    if value is None or type(value) in {int, float}:
        return value  # type: ignore[return-value]  # just checked
    raise ValueError(f"expected a number, got {value!r}")


def moment(value: object) -> datetime | None:
    """Read a moment as slurmrestd writes it: 0 and "infinite" are none.

    Raises:
        ValueError: it is none, or outside of what a datetime can hold.
    """
    seconds = number(value)
    if not seconds or seconds == math.inf:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(f"{seconds} is no moment: {error}") from error


_IN_MINUTES: Final = frozenset({"time_limit", "time_minimum", "duration"})


def encode(fields: Mapping[str, object]) -> bytes:
    """Write a request's body: a datetime as its timestamp, a timedelta in the field's unit, None left out."""
    return msgspec.json.encode(_plain(fields))


def _plain(value: object, key: str = "") -> Any:
    match value:
        case datetime():
            return {"set": True, "number": int(value.timestamp())}
        case timedelta():
            seconds = math.ceil(value.total_seconds())
            return {
                "set": True,
                "number": math.ceil(seconds / 60) if key in _IN_MINUTES else seconds,
            }
        case float() if value == math.inf:
            return {"set": True, "infinite": True}
        case Mapping():
            return {name: _plain(one, name) for name, one in value.items() if one is not None}
        case frozenset() | set():
            return sorted(value)
        case list() | tuple():
            return [_plain(one, key) for one in value]
        case Struct():
            return _plain(msgspec.structs.asdict(value))
        case _:
            return value


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
        except _UNREADABLE as error:
            odd.append(Odd(index, name, str(error)))
    try:
        return kind(**good), tuple(odd)
    except TypeError as error:  # a field that the view cannot do without
        return None, (*odd, Odd(index, "", str(error)))


@functools.lru_cache(maxsize=512)
def _fields(kind: Any) -> tuple[tuple[str, str, Any], ...]:
    return tuple((one.name, one.encode_name, one.type) for one in msgspec.structs.fields(kind))


def _read(kind: object, value: object) -> object:
    if kind is Number:
        return number(value)
    if kind is Time:
        return moment(value)
    raise NotImplementedError(f"{kind} cannot be read from JSON")


@functools.lru_cache(maxsize=512)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind, dec_hook=_read)


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
