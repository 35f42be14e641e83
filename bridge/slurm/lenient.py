"""Reads answers of which a part cannot be decoded: one odd value costs that value, not the answer.

Slurm keeps whatever bytes its users give it, in a job's name or wckey for example, and slurmrestd writes bytes above 127 into
its JSON as they are. JSON is UTF-8, so such an answer breaks its own format. Invalid bytes are read as U+FFFD here. A field
that makes no sense even then keeps its default, and the caller is told which one.
"""

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)

UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises on bytes that are not what they should be."""

_NO_CONTROLS: Final = bytes(max(byte, ord(" ")) for byte in range(256))
"""JSON allows no control character within a string; between values a space is as good."""


@dataclass(frozen=True, slots=True)
class Lenient(Generic[S]):
    """One object as far as it could be read."""

    value: S
    odd: str = ""
    """What is wrong with it, in words; "" if nothing is."""
    left_out: frozenset[str] = frozenset()
    """The fields that could not be decoded and have their defaults."""


def whole(body: bytes, kind: type[S]) -> S:
    """Decode an answer; bytes that JSON does not allow are replaced.

    Raises:
        msgspec.DecodeError: it is no JSON, or not of this kind.
        RecursionError: it is nested too deeply.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except UNDECODABLE:
        repaired = _repaired(body)
        if repaired == body:
            raise
        return msgspec.json.decode(repaired, type=kind)


def one(raw: msgspec.Raw, kind: type[S]) -> Lenient[S]:
    """Decode one object of an answer; what cannot be decoded has its default.

    Raises:
        msgspec.DecodeError: it is no object, or a field without a default cannot be decoded.
        RecursionError: it is nested too deeply.
    """
    body = bytes(raw)
    try:
        return Lenient(msgspec.json.decode(body, type=kind))
    except UNDECODABLE as error:
        odd = str(error)
    repaired = _repaired(body)
    try:
        return Lenient(msgspec.json.decode(repaired, type=kind), odd)
    except msgspec.DecodeError:
        return _by_field(repaired, kind)


def _by_field(body: bytes, kind: type[S]) -> Lenient[S]:
    members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    found: dict[str, object] = {}
    wrong: dict[str, str] = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name not in members:
            continue
        try:
            found[field.name] = msgspec.json.decode(members[field.encode_name], type=field.type)
        except UNDECODABLE as error:
            wrong[field.name] = f"{field.encode_name}: {error}"
    missing = [each.name for each in msgspec.structs.fields(kind) if each.required]
    if lacks := [name for name in missing if name not in found]:
        raise msgspec.ValidationError(
            "; ".join(wrong.get(name, f"{name} is missing") for name in lacks)
        )
    return Lenient(kind(**found), "; ".join(wrong.values()), frozenset(wrong))


def _repaired(body: bytes) -> bytes:
    return body.translate(_NO_CONTROLS).decode(errors="replace").encode()
