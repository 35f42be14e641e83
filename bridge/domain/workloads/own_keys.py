"""Our own labels and annotations, as people write them: what is wrong, and what has no effect.

A key close to a known one is a mistake. Any other unknown one may be of a later release: it has no
effect, and stops no pod.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType

from slurmruntime.values import names
from slurmruntime.values.faults import MOST_FAULTS, Fault

PREFIX = "slurm-bridge.dev/"

_CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {names.GANG_ANNOTATION: ("true", "false"), names.ON_FAILURE_ANNOTATION: ("end",)}
)
_USER_KEYS = (
    names.GANG_ANNOTATION,
    names.ON_FAILURE_ANNOTATION,
    names.WHEN_FULL_ANNOTATION,
    names.POD_GROUP_LABEL,
    names.POD_GROUP_SIZE_ANNOTATION,
)
"""Keys that users write; all others are written by us, or by administrators."""

_KNOWN = frozenset(
    key
    for value in vars(names).values()
    for key in (value if isinstance(value, tuple) else (value,))
    if isinstance(key, str) and key.startswith(PREFIX)
) | {
    f"{PREFIX}{name}"
    for name in (
        "configuration",
        "kube-node",
        "needed",
        "node-set-uid",
        "restarted-for",
        "slurm-key-number",
        "slurmjob-controller",
        "take-over",
        "tls",
        "unneeded-since",
        "worker-profile",
        "workers",
    )
}
"""Those of slurm-operator and of SlurmJobs too: their pods may carry them."""

_LONGEST = 40
"""Longer names are close to nothing."""
_MOST_KEYS = 1000
"""Keys that are looked at; an object with more is refused for their number (`bridge.domain.caps`)."""
_SHORT = 8
"""Of a shorter name, one slip is close; of others, two."""
_SHOWN = 80


def faults(annotations: Mapping[str, str], what: str = "metadata.annotations") -> Iterator[Fault]:
    """Yield what is wrong: values that mean nothing, and keys close to a known one."""
    for key, accepted in _CHOICES.items():
        if (value := annotations.get(key)) is not None and value not in accepted:
            words = f"expected {' or '.join(accepted)}, found {value[:_SHOWN]!r}"
            yield Fault(f"{what}[{key}]", words)
    for key in _unknown(annotations):
        if meant := _meant(key):
            yield Fault(f"{what}[{key}]", f"no such key; did you mean {meant}?")


def without_effect(
    annotations: Mapping[str, str], what: str = "metadata.annotations"
) -> Iterator[str]:
    """Yield the keys that this release does not know."""
    for key in _unknown(annotations):
        if not _meant(key):
            yield f"{what}[{key[:_SHOWN]}]: has no effect, this release of slurm-bridge does not know it"


def _unknown(keys: Mapping[str, str]) -> Sequence[str]:
    some = islice(keys, _MOST_KEYS)
    ours = (key for key in some if key.startswith(PREFIX) and key not in _KNOWN)
    return heapq.nsmallest(MOST_FAULTS, ours)


def _meant(key: str) -> str:
    """Return the known key that this one is a slip of; "" if it is close to none."""
    name = key.removeprefix(PREFIX)
    if len(name) > _LONGEST:
        return ""
    most = 1 if len(name) < _SHORT else 2
    return next(
        (known for known in _USER_KEYS if _slips(name, known.removeprefix(PREFIX), most) <= most),
        "",
    )


def _slips(one: str, other: str, most: int) -> int:
    """Count letters left out, added, mistaken, or swapped with the next one."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        above, row = row, [i]
        for j, b in enumerate(other, 1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a != b)))
    swapped = any(
        one[:i] + one[i + 1 : i + 2] + one[i] + one[i + 2 :] == other for i in range(len(one) - 1)
    )
    return 1 if swapped else row[-1]
