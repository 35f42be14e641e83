"""Values that are words from a list, or lists of such words.

Sources: `arg_set_…` of Slurm's `slurm_opt.c`; `parse_mail_type`, `get_signal_opts`, `verify_hint` of `proc_args.c`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from slurmjobs.script.values.form import UnreadableValue, ValueForm


def one_of(words: Mapping[str, str]) -> ValueForm[str]:
    """Return the form of one word out of several, in any case; each is mapped to slurmrestd's name."""

    def read(text: str) -> str:
        try:
            return words[text.lower()]
        except KeyError:
            raise UnreadableValue("it is not one of the words") from None

    return ValueForm(" or ".join(words), read)


SHARING = one_of(
    {
        "exclusive": "none",
        "allocation": "none",
        "oversubscribe": "oversubscribe",
        "user": "user",
        "mcs": "mcs",
        "topo": "topo",
    }
)
YES_NO = one_of({"yes": "KILL_INVALID_DEPENDENCY", "no": "NO_KILL_INVALID_DEPENDENCY"})
SET_OFF = one_of({"set": "set", "off": "off", "no": "off"})
EXPEDITE = one_of({"expedite": "EXPEDITED_REQUEUE"})


def _open_mode(text: str) -> str:
    match text[:1].lower():
        case "a":
            return "APPEND"
        case "t":
            return "TRUNCATE"
        case _:
            raise UnreadableValue("it begins with neither a nor t")


OPEN_MODE = ValueForm("append or truncate", _open_mode)


def several_of(words: Mapping[str, tuple[str, ...]], *, strict: bool) -> ValueForm[tuple[str, ...]]:
    """Return the form of words separated by commas, in any case.

    Args:
        words: Each with slurmrestd's names for it.
        strict: Whether an unknown word is a fault; else it is ignored, provided that another one is known.
    """

    def read(text: str) -> tuple[str, ...]:
        chosen: dict[str, None] = {}
        for word in filter(None, text.lower().split(",")):
            if word == "none" and not strict:
                return ()
            if word not in words and strict:
                raise UnreadableValue(f"{word!r} is unknown")
            chosen.update(dict.fromkeys(words.get(word, ())))
        if not chosen:
            raise UnreadableValue("it has none of the words")
        return tuple(sorted(chosen))

    return ValueForm("a list of " + ", ".join(words), read)


_MAIL: Final = {
    "begin": ("BEGIN",),
    "end": ("END",),
    "fail": ("FAIL",),
    "requeue": ("REQUEUE",),
    "all": ("BEGIN", "END", "FAIL", "INVALID_DEPENDENCY", "REQUEUE", "STAGE_OUT"),
    "invalid_depend": ("INVALID_DEPENDENCY",),
    "stage_out": ("STAGE_OUT",),
    "time_limit": ("TIME=100%",),
    "time_limit_90": ("TIME=90%",),
    "time_limit_80": ("TIME=80%",),
    "time_limit_50": ("TIME=50%",),
    "array_tasks": ("ARRAY_TASKS",),
}
MAIL = several_of(_MAIL, strict=False)
GRES_FLAGS = several_of(
    {"disable-binding": ("GRES_BINDING_DISABLED",), "enforce-binding": ("GRES_BINDING_ENFORCED",)},
    strict=True,
)


def _profile(text: str) -> tuple[str, ...]:
    lowered = text.lower()
    if "none" in lowered:
        return ("NONE",)
    known = ("ENERGY", "LUSTRE", "NETWORK", "TASK")
    if "all" in lowered:
        return known
    chosen = tuple(word for word in known if word.lower() in lowered)
    if not chosen:
        raise UnreadableValue("it has none of the words")
    return chosen


PROFILE = ValueForm("none, all, or a list of energy, lustre, network, task", _profile)

_HINTS: Final = ("compute_bound", "memory_bound", "multithread", "nomultithread")


@dataclass(frozen=True, slots=True)
class ApplicationHint:
    """A hint on how an application uses a node, also as the user wrote it."""

    text: str
    words: tuple[str, ...]


def _hint(text: str) -> ApplicationHint:
    words = tuple(re.split(r",(?![0-9])", text.lower()))
    for word in words:
        if word not in _HINTS:
            raise UnreadableValue(f"{word!r} is unknown")
    return ApplicationHint(text, words)


HINT = ValueForm("a list of " + ", ".join(_HINTS), _hint)

SIGNALS: Final = {
    "HUP": 1,
    "INT": 2,
    "QUIT": 3,
    "ABRT": 6,
    "KILL": 9,
    "ALRM": 14,
    "TERM": 15,
    "CHLD": 17,
    "USR1": 10,
    "USR2": 12,
    "PIPE": 13,
    "URG": 23,
    "CONT": 18,
    "STOP": 19,
    "TSTP": 20,
    "TTIN": 21,
    "TTOU": 22,
    "XCPU": 24,
}
"""Signals that Slurm knows by name, with their numbers on Linux."""


@dataclass(frozen=True, slots=True)
class WarningSignal:
    """The signal that Slurm sends a job before its time limit."""

    number: int
    before_end_s: int = 60
    to_batch: bool = False
    for_reservation: bool = False


_DIGITS: Final = 5
_SIGNAL = re.compile(
    r"((?:R?B?|BR):?)[ \t]*(?:SIG)?([A-Z0-9+]+)[ \t]*(?:@[ \t]*([0-9]{1,5}))?", re.IGNORECASE
)


def _signal(text: str) -> WarningSignal:
    match = _SIGNAL.fullmatch(text)
    if match is None:
        raise UnreadableValue("it is not a signal")
    to, name, before = match.groups()
    number = (
        int(name) if name.isdecimal() and len(name) <= _DIGITS else SIGNALS.get(name.upper(), 0)
    )
    if not 1 <= number <= 2**16 - 1:
        raise UnreadableValue(f"there is no signal {name}")
    seconds = int(before or 60)
    if seconds > 2**16 - 1:
        raise UnreadableValue("it is more than 65535 seconds")
    return WarningSignal(number, seconds, "b" in to.lower(), "r" in to.lower())


SIGNAL = ValueForm("[R][B][:]signal[@seconds]: USR1, B:TERM@120, 10@300", _signal)
