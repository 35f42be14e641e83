"""Find the faults of a file of Slurm's configuration before a daemon reads it.

The daemon that tries a file has the last word. This check is earlier: it reports all faults at once, with their lines and
what was probably meant.
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
    """Find the faults of a file; one that is not in `FILES` has none. `path` is the field to correct, such as `spec.extraConf`."""
    known = FILES.get(file)
    if known is None:
        return
    seen: dict[str, int] = {}
    for line in lines.read(text):
        at = f"{path} line {line.number}"
        first = known.get(line.settings[0].key.lower()) if line.settings else None
        is_repeated = first is not None and first.kind is ParameterKind.REPEATED
        yield from _check_line(line, first if is_repeated else None, known, file, at)
        for setting in line.settings if first and not is_repeated else ():
            key = setting.key.lower()
            before = seen.setdefault(key, line.number)
            if before != line.number:
                message = f"{setting.key} is already set in line {before}: keep only one of them"
                yield Fault(at, message)


def _check_line(
    line: ConfLine,
    repeated: Parameter | None,
    known: Mapping[str, Parameter],
    file: str,
    at: str,
) -> Iterator[Fault]:
    if line.includes:
        text = (
            f"Include {line.includes}: put its lines here, or add its ConfigMap to configFileRefs"
        )
        yield Fault(at, text)
        return
    if len(line.text) > LONGEST_LINE:
        yield Fault(at, f"expected at most {LONGEST_LINE} characters, found {len(line.text)}")
        return
    if line.rest:
        yield Fault(at, f"expected Key=Value, found {line.rest[:80]!r}")
    if repeated is None:
        for setting in line.settings:
            yield from _check_setting(setting, known, file, at)
        return
    for setting in line.settings[1:]:
        if setting.key.lower() not in repeated.own:
            hint = _suggest(setting.key, repeated.own)
            yield Fault(at, f"a {repeated.name} line has no {setting.key}{hint}")
    if not line.settings[0].value:
        yield Fault(at, f"expected a value for {repeated.name}")


def _check_setting(
    setting: Setting, known: Mapping[str, Parameter], file: str, at: str
) -> Iterator[Fault]:
    parameter = known.get(setting.key.lower())
    if parameter is None:
        names = {entry.name for entry in known.values()}
        yield Fault(at, f"{file} has no parameter {setting.key}{_suggest(setting.key, names)}")
    elif parameter.kind is ParameterKind.REPEATED:
        yield Fault(at, f"{parameter.name} must begin a line of its own")
    elif parameter.kind is ParameterKind.NUMBER and not _NUMBER.match(setting.value):
        yield Fault(at, f"expected a number for {parameter.name}, found {setting.value[:80]!r}")
    elif parameter.kind is ParameterKind.SWITCH and setting.value.lower() not in _SWITCH:
        yield Fault(at, f"expected yes or no for {parameter.name}, found {setting.value[:80]!r}")


def _suggest(key: str, names: set[str] | frozenset[str]) -> str:
    by_lower = {name.lower(): name for name in sorted(names)}
    close = difflib.get_close_matches(key.lower(), by_lower, n=1, cutoff=0.75)
    return f": did you mean {by_lower[close[0]]}?" if close else ""
