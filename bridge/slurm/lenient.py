"""Decode responses of which a part is invalid: one odd value costs that value, not the response.

Slurm stores whatever bytes its users supply, for example in a job's name or wckey, and slurmrestd
writes bytes above 127 into its JSON unchanged. JSON is UTF-8, so such a response violates its own
format. Invalid bytes are replaced by U+FFFD here. A field that still cannot be decoded keeps its
default, and the result names it.
"""

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)

UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The exceptions msgspec raises on invalid input."""

_NO_CONTROLS: Final = bytes(max(byte, ord(" ")) for byte in range(256))
"""Maps control characters to spaces: JSON allows none in a string, and between values a space will
do."""


@dataclass(frozen=True, slots=True)
class Lenient(Generic[S]):
    """One object, as far as it could be decoded."""

    value: S
    odd: str = ""
    """What is wrong with it, as a message; "" if nothing is."""
    left_out: frozenset[str] = frozenset()
    """The fields that could not be decoded and keep their defaults."""


def whole(body: bytes, kind: type[S]) -> S:
    """Decode a response; replace bytes that JSON does not allow.

    Raises:
        msgspec.DecodeError: it is not JSON, or not of this kind.
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
    """Decode one object of a response; fields that cannot be decoded keep their defaults.

    Raises:
        msgspec.DecodeError: it is not an object, or a field without a default cannot be decoded.
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
