"""Read a script: its options and all of its faults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slurmjobs.script import body, directives, foreign, getopt
from slurmjobs.script.directives import LONGEST_HEADER, where
from slurmjobs.script.getopt import NoOption, Takes
from slurmjobs.script.option_values import OptionValue, OptionValues
from slurmjobs.script.options import BY_FIELD, IGNORE_PBS, OPTIONS, AnyOption, Treatment
from slurmjobs.script.values.form import UnreadableValue
from slurmruntime.values.faults import MOST_FAULTS, Fault


@dataclass(frozen=True, slots=True)
class ScriptContent:
    """What a script asks for."""

    options: OptionValues
    faults: Sequence[Fault] = ()
    """Why it cannot become a job; the path is the line."""
    warnings: Sequence[Fault] = ()
    """What sbatch accepts silently but the author may not have meant."""


def script(text: str, fields: Mapping[str, object] | None = None) -> ScriptContent:
    """Read a batch script, with options beside it that override it, such as `{"cpusPerTask": 4, "hold": True}`."""
    reader = _Reader(list(body.faults(text)))
    text = text.removeprefix(body.BYTE_ORDER_MARK)  # the rest is read as its author meant it
    reader.read_header(text)
    if not any(choice.option is IGNORE_PBS for choice in reader.chosen):
        reader.read_foreign(text)
    reader.read_fields(fields or {})
    return ScriptContent(
        OptionValues(tuple(reader.chosen)), tuple(reader.faults), tuple(reader.warnings)
    )


class _Reader:
    def __init__(self, faults: list[Fault]) -> None:
        self.chosen: list[OptionValue] = []
        self.faults = faults
        self.warnings: list[Fault] = []

    def read_header(self, text: str) -> None:
        header = directives.header(text)
        self.faults += header.faults
        self.warnings += header.warnings
        for parsed in getopt.parse(header.words, OPTIONS):
            if isinstance(parsed, NoOption):
                self._fault(where(parsed.line), parsed.message)
                continue
            self._choose(OPTIONS[parsed.index], parsed.value, where(parsed.line))
            if len(self.faults) > MOST_FAULTS:
                return  # more are never shown

    def read_foreign(self, text: str) -> None:
        """Translate `#BSUB`, or else `#PBS`: sbatch reads only one of them."""
        translated = foreign.bsub(text) or foreign.pbs(text)
        if translated is None:
            return
        self.faults += translated.faults
        for option, value, line in translated.options:
            self._choose(option, value, where(line))
            if len(self.faults) > MOST_FAULTS:
                return

    def read_fields(self, fields: Mapping[str, object]) -> None:
        characters = 0
        for name, value in fields.items():
            path = f"fields.{name}"
            characters += len(name) + (len(value) if isinstance(value, str) else 0)
            if characters > LONGEST_HEADER:
                text = f"the values up to here have more than {LONGEST_HEADER} characters"
                self._fault(path, text)
            if len(self.faults) > MOST_FAULTS or characters > LONGEST_HEADER:
                return
            option = BY_FIELD.get(name)
            if option is None:
                self._fault(path, "sbatch has no such option")
            elif option.takes is Takes.NOTHING:
                if not isinstance(value, bool):
                    self._fault(path, f"expected true or false, found {value!r}")
                elif value:
                    self._choose(option, None, path)
            elif option.takes is Takes.PERHAPS and value is True:
                self._choose(option, None, path)
            elif isinstance(value, str | int) and not isinstance(value, bool):
                self._choose(option, str(value), path)
            else:
                self._fault(path, f"expected text or a number, found {value!r}")

    def _choose(self, option: AnyOption, text: str | None, path: str) -> None:
        if option.treatment is Treatment.REFUSED:
            self._fault(path, f"--{option.name} is not supported: {option.note}")
        elif option.treatment is Treatment.IGNORED:
            self.warnings.append(Fault(path, f"--{option.name} has no effect: {option.note}"))
        elif text is None or option.form is None or (not text and option.takes is Takes.PERHAPS):
            self.chosen.append(OptionValue(option, option.default, path))
        elif len(text) > option.form.longest:
            accepts = f"at most {option.form.longest}: {option.form.accepts}"
            self._fault(path, f"--{option.name} has {len(text)} characters, expected {accepts}")
        else:
            try:
                self.chosen.append(OptionValue(option, option.form.read(text), path))
            except UnreadableValue as error:
                shown = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
                expected = f"expected {option.form.accepts}"
                self._fault(path, f"--{option.name}={shown}: {error}; {expected}")

    def _fault(self, path: str, message: str) -> None:
        self.faults.append(Fault(path, message))


_LONGEST_SHOWN = 80
