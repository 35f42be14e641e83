"""Numbers that others write in annotations, labels and specs; overlong ones are not numbers."""

from collections.abc import Mapping, Sequence

from bridge.domain.model.pods import Pod
from bridge.domain.workloads.membership import Size
from slurmruntime.model.objects import JsonObject
from slurmruntime.values import numbers
from slurmruntime.values.faults import Fault

_DIGITS = 9
"""No size or rank has more; an annotation may have 256 kB of them."""
_MOST = 10**_DIGITS - 1
_SHOWN = 3
"""This many examples are enough in a message."""
_CHARACTERS = 40
"""And this many characters of each."""


def number(text: str) -> int | None:
    """Return the whole number in a text; None if it is not one, or is too long."""
    return numbers.integer(text, most=_MOST)


def rank(texts: Mapping[str, str], key: str) -> tuple[int, ...]:
    """Return the number under a key as a rank; () if there is none."""
    value = number(texts.get(key, ""))
    return () if value is None else (value,)


def count(value: object, path: str, faults: list[Fault]) -> int:
    """Return a whole number from 1; anything else is a fault and counts as 0."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    faults.append(Fault(path, f"expected a whole number from 1, found {_shortened(repr(value))}"))
    return 0


def written(texts: Sequence[str], path: str) -> Size:
    """Return the size that all of these texts must agree on."""
    sizes = sorted(set(texts))
    if len(sizes) > 1:
        listed = " and ".join(_shortened(text) for text in sizes[:_SHOWN])
        return Size(
            0, 1, (Fault(path, f"expected one size for all pods of the group, found {listed}"),)
        )
    faults: list[Fault] = []
    text = sizes[0] if sizes else "1"
    parsed = number(text)
    if parsed is None and text.isascii() and text.isdecimal():
        message = f"expected a whole number of at most {_DIGITS} digits, found {_shortened(text)}"
        return Size(0, 1, (Fault(path, message),))
    size = count(text if parsed is None else parsed, path, faults)
    return Size(size, max(size, 1), tuple(faults))


def annotated(pods: Sequence[Pod], key: str) -> Size:
    """Return the size that every pod must name in an annotation."""
    path = f"metadata.annotations[{key}]"
    missing = [pod.name for pod in pods if key not in pod.annotations]
    size = written([pod.annotations[key] for pod in pods if key in pod.annotations], path)
    if not missing:
        return size
    listed = ", ".join(missing[:_SHOWN])
    fault = Fault(path, f"missing on {listed}: every pod of the group must name the group's size")
    return size._replace(faults=(*size.faults, fault))


def dig(value: object, *keys: str) -> JsonObject:
    """Return the object at a path of keys; {} if there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _shortened(text: str) -> str:
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}…"
