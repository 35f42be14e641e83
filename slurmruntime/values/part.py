"""Parts of an object that are read only up to a length: skipping JSON costs a twentieth of what decoding it does.

An author may give a pod 100 000 tolerations at any time, and every program that watches pods would decode them with each
change of it, on its event loop. So the field of the struct is a `msgspec.Raw`, and a `Part` decodes it. What stands
for a part that is too long is for the caller to say: something that is refused anyway.
"""

from typing import Any, Final, Generic, TypeVar, cast

import msgspec

T = TypeVar("T")

LONGEST_LIST_BYTES: Final = 64 * 2**10
"""Of owners or tolerations: 500 with a hundred bytes each. Honest objects have a few."""
LONGEST_AFFINITY_BYTES: Final = 128 * 2**10
"""2000 values, as many as the caps allow by default, with 60 characters each."""


class Part(Generic[T]):
    """How a part is decoded, and how long it may be."""

    def __init__(self, kind: type[T], *, path: str, longest_bytes: int) -> None:
        """path: where it stands in its object, as msgspec writes it: `$.spec.tolerations`."""
        self._path = path
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(cast("Any", kind))
        self._longest_bytes = longest_bytes

    def read(self, raw: msgspec.Raw, *, absent: T, too_long: T) -> T:
        """Decode the part; raise ValidationError, which names the place in the whole object."""
        if len(memoryview(raw)) > self._longest_bytes:
            return too_long
        if is_absent(raw):
            return absent
        try:
            return self._decoder.decode(raw)
        except msgspec.ValidationError as error:
            # msgspec counts from the part: `Expected …, got … - at `$[1].key``, without a place for the part itself.
            words, _, within = str(error).partition(" - at `$")
            place = f"{self._path}{within or '`'}"
            raise msgspec.ValidationError(f"{words} - at `{place}") from error


def is_absent(raw: msgspec.Raw) -> bool:
    """Check whether a field is missing or null."""
    return bytes(raw) in (b"", b"null")
