"""Decoding answers into structs, so that an undecodable object costs only itself.

If an answer does not decode as a whole, its objects are decoded one by one. If an object does not
decode, its fields are decoded one by one: an invalid field keeps its default and is reported in
`Listing.odd`. Slurm stores whatever bytes its users supply, in a job's name for example, and
slurmrestd writes them into its JSON unchanged. Those that are not UTF-8 become U+FFFD, and control
characters become spaces.
"""

import contextlib
import functools
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Generic, TypeVar, cast

import msgspec
from msgspec import Raw, Struct

from slurmclient.errors import Problem, Remark
from slurmclient.wire.values import Time, dec_hook

T = TypeVar("T")

UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""All exceptions that decoding can raise."""
_NOTHING: Final[tuple["Odd", ...]] = ()
_NO_CONTROLS: Final = bytes(max(byte, ord(" ")) for byte in range(256))
"""Maps control characters to spaces: JSON allows none in a string, and between values a space is as good."""


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


class DecodeResult(Struct, Generic[T], frozen=True):
    """One object, as far as it could be decoded."""

    value: T
    odd: tuple[Odd, ...] = ()
    """The fields that could not be decoded and keep their defaults."""
    repaired: str = ""
    """Why bytes had to be replaced; "" if none had."""

    @property
    def left_out(self) -> frozenset[str]:
        """The names of the fields that could not be decoded."""
        return frozenset(fault.field for fault in self.odd)

    @property
    def why(self) -> str:
        """Why the object could not be decoded completely; "" if it could."""
        return _words(self.odd) or self.repaired


class Unreadable(Struct, frozen=True):
    """Something that is not an object, or lacks a required field."""

    odd: tuple[Odd, ...]

    @property
    def why(self) -> str:
        """Why it could not be decoded."""
        return _words(self.odd)


class Listing(list[T]):
    """A list of objects, with decoding failures and Slurm's warnings."""

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
            updated_at: The answer's `last_update`: when Slurm last changed one of the objects, by
                Slurm's clock. None if the answer has none.
        """
        super().__init__(items)
        self.odd = odd
        self.warnings = warnings
        self.updated_at = updated_at


class Answer(Struct, frozen=True):
    """The fields that any answer may have: one with `errors` and a `job_id` means a submitted job."""

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


def listing(body: bytes, key: str, kind: type[T]) -> tuple[Listing[T], Answer]:
    """Decode an answer's list, named `key`, and the fields that any answer may have.

    A missing or null list is empty.

    Raises:
        msgspec.MsgspecError: If this is not an answer of slurmrestd's.
        RecursionError: If it is nested too deeply.
    """
    try:
        envelope = _decoder(_envelope(key, cast("Any", kind))).decode(body)
        items, odd = envelope.items, _NOTHING
    except UNREADABLE:
        envelope = _decoder(_envelope(key, Raw)).decode(repaired(body))
        read = [one(bytes(raw), kind, index) for index, raw in enumerate(envelope.items or ())]
        items = [item for item, _ in read if item is not None]
        odd = tuple(odd for _, odds in read for odd in odds)
    warnings = tuple(envelope.warnings or ())
    listed = Listing(items or (), odd=odd, warnings=warnings, updated_at=envelope.last_update)
    return listed, Answer(errors=envelope.errors, warnings=envelope.warnings)


def one(body: bytes, kind: type[T], index: int = 0) -> tuple[T | None, tuple[Odd, ...]]:
    """Decode an object as `lenient` does; return None without a required field, and what was odd."""
    result = lenient(body, kind, index)
    return (None if isinstance(result, Unreadable) else result.value), result.odd


def lenient(
    body: bytes, kind: type[T], index: int = 0, *, is_null_odd: bool = False
) -> DecodeResult[T] | Unreadable:
    """Decode an object, field by field if it is invalid.

    Args:
        index: The object's position in its list, for `Odd.index`.
        is_null_odd: Report null in a field that does not allow it. Otherwise the field keeps its
            default silently, because slurmrestd writes null for an empty list or object.
    """
    try:
        return DecodeResult(decode(body, kind))
    except UNREADABLE as error:
        why = str(error)
    clean = repaired(body)
    if clean != body:
        with contextlib.suppress(*UNREADABLE):
            return DecodeResult(decode(clean, kind), repaired=why)
    try:
        fields = decode(clean, dict[str, Raw])
    except UNREADABLE as error:
        return Unreadable((Odd(index, "", str(error)),))
    return _by_fields(fields, kind, index, is_null_odd=is_null_odd)


def repaired(body: bytes) -> bytes:
    """Replace the bytes that JSON does not allow."""
    return body.translate(_NO_CONTROLS).decode(errors="replace").encode()


def _by_fields(
    fields: Mapping[str, Raw], kind: type[T], index: int, *, is_null_odd: bool
) -> DecodeResult[T] | Unreadable:
    odd = []
    good = {}
    for name, wire_name, field_type in _fields(cast("Any", kind)):
        raw = bytes(fields.get(wire_name, b""))
        if not raw or (raw == b"null" and not is_null_odd):
            continue
        try:
            good[name] = decode(raw, field_type)
        except UNREADABLE as error:
            odd.append(Odd(index, name, str(error)))
    try:
        return DecodeResult(kind(**good), tuple(odd))
    except TypeError as error:  # a field without a default is missing
        return Unreadable((*odd, Odd(index, "", str(error))))


def _words(odd: Iterable[Odd]) -> str:
    return "; ".join(f"{fault.field}: {fault.why}" if fault.field else fault.why for fault in odd)


@functools.lru_cache(maxsize=512)
def _fields(kind: Any) -> tuple[tuple[str, str, Any], ...]:
    return tuple(
        (field.name, field.encode_name, field.type) for field in msgspec.structs.fields(kind)
    )


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
