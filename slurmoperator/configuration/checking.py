"""Find the faults of a file of Slurm's configuration before a daemon reads it.

Whether a file is good, the daemon says that tries it. What is seen here is told sooner, with all faults at once, their lines, and what was
probably meant.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Final

from slurmoperator.configuration import lines
from slurmoperator.configuration.lines import LONGEST_LINE, ConfLine, Setting
from slurmoperator.configuration.parameters import FILES, Parameter, ParameterKind
from slurmruntime.values.faults import Fault

_NUMBER = re.compile(r"(?i)^(0x[0-9a-f]+|-?[0-9]+[kmg]?|infinite|unlimited)$")
_SWITCH: Final = frozenset({"yes", "no", "y", "n", "up", "down", "true", "false", "1", "0"})


def check(file: str, text: str, path: str) -> Iterator[Fault]:
    """Find the faults of a file that we read.

    Args:
        file: `slurm.conf` and so on; one that is not in `FILES` has no faults.
        text: what stands in it.
        path: where it stands, for whoever has to change it, such as `spec.extraConf`.
    """
    known = FILES.get(file)
    if known is None:
        return
    seen: dict[str, int] = {}
    for line in lines.read(text):
        at = f"{path} line {line.number}"
        yield from _check_line(line, known, file, at)
        for setting in _leading(line, known):
            key = setting.key.lower()
            before = seen.setdefault(key, line.number)
            if before != line.number:
                message = f"{setting.key} stands in line {before} already: keep one of them"
                yield Fault(at, message)


def _leading(line: ConfLine, known: Mapping[str, Parameter]) -> tuple[Setting, ...]:
    """Return the settings of a line that may stand only once in the file."""
    first = known.get(line.settings[0].key.lower()) if line.settings else None
    if first is None or first.kind is ParameterKind.REPEATED:
        return ()
    return line.settings


def _check_line(
    line: ConfLine, known: Mapping[str, Parameter], file: str, at: str
) -> Iterator[Fault]:
    if line.includes:
        yield Fault(at, f"Include {line.includes}: put its lines here, or name its ConfigMap")
        return
    if len(line.text) > LONGEST_LINE:
        yield Fault(at, f"expected at most {LONGEST_LINE} characters, found {len(line.text)}")
        return
    if line.rest:
        yield Fault(at, f"expected Key=Value, found {line.rest[:80]!r}")
    if not line.settings:
        return
    first = known.get(line.settings[0].key.lower())
    if first is None or first.kind is not ParameterKind.REPEATED:
        for setting in line.settings:
            yield from _check_setting(setting, known, file, at)
        return
    for setting in line.settings[1:]:
        if setting.key.lower() not in first.own:
            meant = _meant(setting.key, first.own)
            yield Fault(at, f"a line of {first.name} has no {setting.key}{meant}")
    if not line.settings[0].value:
        yield Fault(at, f"expected a value of {first.name}")


def _check_setting(
    setting: Setting, known: Mapping[str, Parameter], file: str, at: str
) -> Iterator[Fault]:
    parameter = known.get(setting.key.lower())
    if parameter is None:
        names = {each.name for each in known.values()}
        yield Fault(at, f"{file} has no parameter {setting.key}{_meant(setting.key, names)}")
    elif parameter.kind is ParameterKind.REPEATED:
        yield Fault(at, f"{parameter.name} must begin a line of its own")
    elif parameter.kind is ParameterKind.NUMBER and not _NUMBER.match(setting.value):
        yield Fault(at, f"expected a number for {parameter.name}, found {setting.value[:80]!r}")
    elif parameter.kind is ParameterKind.SWITCH and setting.value.lower() not in _SWITCH:
        yield Fault(at, f"expected yes or no for {parameter.name}, found {setting.value[:80]!r}")


def _meant(found: str, names: set[str] | frozenset[str]) -> str:
    by_lower = {name.lower(): name for name in sorted(names)}
    close = difflib.get_close_matches(found.lower(), by_lower, n=1, cutoff=0.75)
    return f": did you mean {by_lower[close[0]]}?" if close else ""
