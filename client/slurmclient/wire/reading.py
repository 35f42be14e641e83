"""Decoding answers into structs, so that one odd object costs only itself.

If an answer does not decode as a whole, its objects are decoded one by one. If an object does not
decode, its fields are decoded one by one: an invalid field keeps its default and is reported in
`Listing.odd`. Slurm accepts any bytes in a job's name; those that are not UTF-8 become U+FFFD.
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

UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding raises, whatever the input."""
_NOTHING: Final[tuple["Odd", ...]] = ()


class Model(Struct, frozen=True, gc=False):
    """Base class of everything that is read from Slurm.

    Derive a view from it to decode only the fields that you need:

        class Row(Model, frozen=True):
            job_id: int
            user_name: str = ""
            start_time: Time = None

    Field names are Slurm's. Give every field a default unless an object without it is useless.
    """


class Odd(Struct, frozen=True):
    """A field or an object that could not be decoded."""

    index: int
    """The object's position in Slurm's list, from 0."""
    field: str
    """The field's name; "" if the whole object is unreadable and left out of the listing."""
    why: str


class Listing(list[T]):
    """A list of objects, with what could not be decoded and what Slurm remarked."""

    def __init__(
        self,
        items: Iterable[T] = (),
        *,
        odd: tuple[Odd, ...] = (),
        warnings: tuple[Remark, ...] = (),
        updated_at: datetime | None = None,
    ) -> None:
        """Create a listing.

        Args:
            items: The objects.
            odd: The fields and objects that could not be decoded.
            warnings: The answer's `warnings`.
            updated_at: The answer's `last_update`: when Slurm last changed one of the objects, by
                Slurm's clock. None if the answer has none.
        """
        super().__init__(items)
        self.odd = odd
        self.warnings = warnings
        self.updated_at = updated_at


class Answer(Struct, frozen=True):
    """The fields that any answer may have.

    `job_id` is among them because an answer with `errors` and a job id means a submitted job.
    """

    errors: list[Problem] | None = None
    warnings: list[Remark] | None = None
    job_id: int | None = None


def decode(body: bytes, kind: type[T]) -> T:
    """Decode JSON into a type.

    Raises:
        msgspec.MsgspecError: If it is not JSON, or does not match the type.
        UnicodeDecodeError: If it is not UTF-8.
        RecursionError: If it is nested too deeply.
    """
    return cast("T", _decoder(cast("Any", kind)).decode(body))


def convert(value: object, kind: type[T]) -> T:
    """Convert parsed JSON into a type.

    Raises:
        msgspec.ValidationError: If it does not match the type.
    """
    return msgspec.convert(value, kind, dec_hook=dec_hook)


def listing(body: bytes, key: str, kind: type[T]) -> tuple[Listing[T], Answer]:
    """Decode an answer's list, and the fields that any answer may have.

    Args:
        body: The answer's JSON.
        key: The list's name in the answer, such as `jobs`; a missing or null list is empty.
        kind: The type of its objects.

    Raises:
        msgspec.MsgspecError: If this is not an answer of slurmrestd's.
        RecursionError: If it is nested too deeply.
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
    """Decode an object, field by field if it is invalid as a whole.

    Args:
        body: The object's JSON.
        kind: The type to decode into.
        index: The object's position in its list, for `Odd.index`.

    Returns:
        The object and its invalid fields; None instead of an object without a required field.
    """
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
        if fields.get(wire_name) is None:  # slurmrestd writes null for an empty list or object
            continue
        try:
            good[name] = convert(fields[wire_name], type_)
        except UNREADABLE as error:
            odd.append(Odd(index, name, str(error)))
    try:
        return kind(**good), tuple(odd)
    except TypeError as error:  # a field without a default is missing
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
