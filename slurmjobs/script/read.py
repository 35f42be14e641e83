"""Read a script: its options and all of its faults."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from slurmjobs.script import body, directives, foreign, getopt
from slurmjobs.script.directives import LONGEST_HEADER, HeaderWords, where
from slurmjobs.script.getopt import NoOption, Takes
from slurmjobs.script.option_values import OptionValue, OptionValues
from slurmjobs.script.options import (
    BY_FIELD,
    IGNORE_PBS,
    OPTIONS,
    AnyOption,
    Treatment,
)
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
    faults = list(body.faults(text))
    text = text.removeprefix(body.BYTE_ORDER_MARK)  # the rest is read as its author meant it
    warnings: list[Fault] = []
    header = directives.header(text)
    chosen = list(_header_options(header, faults, warnings))
    if not any(choice.option is IGNORE_PBS for choice in chosen):
        chosen += _foreign_options(text, faults, warnings)
    chosen += _field_options(fields or {}, faults, warnings)
    return ScriptContent(OptionValues(tuple(chosen)), tuple(faults), tuple(warnings))


def _header_options(
    words: HeaderWords, faults: list[Fault], warnings: list[Fault]
) -> Iterator[OptionValue]:
    faults += words.faults
    warnings += words.warnings
    for parsed in getopt.parse(words.words, OPTIONS):
        if isinstance(parsed, NoOption):
            faults.append(Fault(where(parsed.line), parsed.message))
            continue
        yield from _choose(
            OPTIONS[parsed.index], parsed.value, where(parsed.line), faults, warnings
        )
        if len(faults) > MOST_FAULTS:
            return  # more are never shown


def _foreign_options(
    text: str, faults: list[Fault], warnings: list[Fault]
) -> Iterator[OptionValue]:
    """Translate `#BSUB`, or else `#PBS`: sbatch reads only one of them."""
    for translate in (foreign.bsub, foreign.pbs):
        translated = translate(text)
        if translated is None:
            continue
        faults += translated.faults
        for option in translated.options:
            yield from _choose(option.option, option.value, where(option.line), faults, warnings)
            if len(faults) > MOST_FAULTS:
                return
        return


def _field_options(
    fields: Mapping[str, object], faults: list[Fault], warnings: list[Fault]
) -> Iterator[OptionValue]:
    characters = 0
    for name, value in fields.items():
        path = f"fields.{name}"
        characters += len(name) + (len(value) if isinstance(value, str) else 0)
        if characters > LONGEST_HEADER:
            text = f"the values up to here have more than {LONGEST_HEADER} characters"
            faults.append(Fault(path, text))
        if len(faults) > MOST_FAULTS or characters > LONGEST_HEADER:
            return
        option = BY_FIELD.get(name)
        if option is None:
            faults.append(Fault(path, "sbatch has no such option"))
        elif option.takes is Takes.NOTHING:
            if not isinstance(value, bool):
                faults.append(Fault(path, f"expected true or false, found {value!r}"))
            elif value:
                yield from _choose(option, None, path, faults, warnings)
        elif option.takes is Takes.PERHAPS and value is True:
            yield from _choose(option, None, path, faults, warnings)
        elif isinstance(value, str | int) and not isinstance(value, bool):
            yield from _choose(option, str(value), path, faults, warnings)
        else:
            faults.append(Fault(path, f"expected text or a number, found {value!r}"))


def _choose(
    option: AnyOption,
    text: str | None,
    path: str,
    faults: list[Fault],
    warnings: list[Fault],
) -> Iterator[OptionValue]:
    if option.treatment is Treatment.REFUSED:
        faults.append(Fault(path, f"--{option.name} is not supported: {option.note}"))
    elif option.treatment is Treatment.IGNORED:
        warnings.append(Fault(path, f"--{option.name} has no effect: {option.note}"))
    elif text is None or option.form is None or (not text and option.takes is Takes.PERHAPS):
        yield OptionValue(option, option.default, path)
    elif len(text) > option.form.longest:
        accepts = f"at most {option.form.longest}: {option.form.accepts}"
        faults.append(
            Fault(path, f"--{option.name} has {len(text)} characters, expected {accepts}")
        )
    else:
        try:
            yield OptionValue(option, option.form.read(text), path)
        except UnreadableValue as error:
            shown = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
            faults.append(
                Fault(path, f"--{option.name}={shown}: {error}; expected {option.form.accepts}")
            )


_LONGEST_SHOWN = 80
