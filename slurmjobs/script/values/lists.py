"""Values that are lists: indexes of an array, generic resources, sampling intervals, names of limits.

Sources: `slurm_parse_array_tok`, `gres_prepend_tres_type`, `validate_acctg_freq`, `parse_rlimits` of Slurm.
"""

import re
from functools import partial
from typing import Final

from slurmjobs.script.values.form import LONGEST_VALUE, UnreadableValue, ValueForm
from slurmruntime.values import hostlist
from slurmruntime.values.hostlist import HostlistSize

LIMITS: Final = ("CPU", "FSIZE", "DATA", "STACK", "CORE", "RSS", "NPROC", "NOFILE", "MEMLOCK", "AS")
"""The process limits that Slurm propagates, in its order."""

_INDEXES = re.compile(r"[0-9]{1,9}(?:-[0-9]{1,9}(?::[0-9]{1,9})?)?")


def _array(text: str) -> str:
    if not text:
        return text  # no array at all
    body = re.sub(r"%[0-9]{0,9}$", "", text).strip("[]")
    for part in body.split(","):
        if _INDEXES.fullmatch(part) is None:
            raise UnreadableValue(f"{part!r} is neither a number nor a range")
        first, _, last = part.partition(":")[0].partition("-")
        if last and int(last) < int(first):
            raise UnreadableValue(f"the range {part} counts downwards")
        if part.endswith(":0"):
            raise UnreadableValue(f"the range {part} never ends")
    return text


ARRAY = ValueForm(
    "numbers and ranges, then %N for how many tasks run at a time: 0-15:4,20%3",
    _array,
    longest=LONGEST_VALUE,
)


def _gres(text: str) -> str:
    if text.lower() in {"help", "list"}:
        raise UnreadableValue("a script cannot ask for help")
    if text.lower() == "none":
        return "none"
    return f"gres/{text}".replace(",", ",gres/").replace("gres/gres/", "gres/")


GRES = ValueForm("a list of name[[:type]:count]", _gres)

_FREQUENCY = re.compile(r"(?:(?:task|energy|network|filesystem)=)?[0-9]{1,9}.*", re.IGNORECASE)


def _frequencies(text: str) -> str:
    for part in filter(None, text.split(",")):
        if _FREQUENCY.fullmatch(part) is None:
            raise UnreadableValue(f"{part!r} is not an interval")
    return text


FREQUENCIES = ValueForm("a list of task=, energy=, network=, filesystem=seconds", _frequencies)


def _limits(text: str) -> tuple[str, ...]:
    if text == "ALL":
        return LIMITS
    if text == "NONE":
        return ()
    wanted = {part.removeprefix("RLIMIT_") for part in re.split(r"[, \t\n]+", text) if part}
    if unknown := wanted - set(LIMITS):
        raise UnreadableValue(f"limit {min(unknown)!r} is unknown")
    return tuple(name for name in LIMITS if name in wanted)


LIMIT_NAMES = ValueForm(
    "ALL, NONE, or a list of " + ", ".join(LIMITS),
    _limits,
)


MOST_NAMED: Final = HostlistSize(names=16_384, characters=512 * 1024)
"""For --nodelist, whose names are expanded one by one."""


def _node_names(most: HostlistSize, text: str) -> str:
    if "/" in text:
        raise UnreadableValue("it names a file, which slurm-bridge cannot read: list the nodes")
    if "{" in text:
        return text  # blocks of a topology, which only Slurm knows
    try:
        hostlist.measure(text, most=most)
    except ValueError as error:
        raise UnreadableValue(str(error)) from None
    return text


def _names_up_to(most: HostlistSize) -> ValueForm[str]:
    read = partial(_node_names, most)
    return ValueForm("node names: a1,gpu[01-04]", read, longest=LONGEST_VALUE)


NODE_NAMES = _names_up_to(hostlist.MOST)
NAMED_NODES = _names_up_to(MOST_NAMED)

_LONG_NUMBER = re.compile(r"[0-9]{10}")


def _gpus(text: str) -> str:
    if _LONG_NUMBER.search(text):
        raise UnreadableValue("a count has more than nine digits")
    return text


GPUS = ValueForm("a count, or a list of type:count", _gpus)
