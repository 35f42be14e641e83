"""Parse a plain command line without Typer, which takes 0.2 s to import: as much as the rest.

Only the unambiguous is parsed: options by their full names, each with its value, and arguments. Typer parses everything else
from the same declarations: help, mistakes, several flags in one word.
"""

import contextlib
import enum
import inspect
from collections.abc import Iterator, Mapping, Sequence

from slurmcli.line.declaring import Operand, Option, declaration_of, names_of


class _NotPlain(Exception):
    """Typer has to parse it."""


def read(
    signature: inspect.Signature, words: Sequence[str], environment: Mapping[str, str]
) -> Mapping[str, object] | None:
    """Return the arguments for a command with this signature; None if Typer has to parse the words.

    All its parameters are declared by `slurmcli.line.declaring`. The words are those after the command's
    name; the environment may set options.
    """
    try:
        return _read(signature, words, environment)
    except _NotPlain:
        return None


def _read(
    signature: inspect.Signature, words: Sequence[str], environment: Mapping[str, str]
) -> Mapping[str, object]:
    options: dict[str, tuple[str, object]] = {}
    operands: list[str] = []
    arguments: dict[str, object] = {}
    for name, parameter in signature.parameters.items():
        kind, declaration = declaration_of(parameter.annotation)
        match declaration:
            case Option():
                options |= dict.fromkeys(names_of(name, declaration), (name, kind))
                default = environment.get(declaration.envvar or "")
                arguments[name] = _value(kind, default) if default else parameter.default
            case Operand():
                operands.append(name)
            case None:
                raise _NotPlain
    values: list[str] = []
    rest = iter(words)
    for word in rest:
        if word.startswith("-"):
            name, value = _option(word, rest, options)
            arguments[name] = value
        else:
            values.append(word)
    if len(values) != len(operands):
        raise _NotPlain
    return {**arguments, **dict(zip(operands, values, strict=True))}


def _option(
    word: str, rest: Iterator[str], options: Mapping[str, tuple[str, object]]
) -> tuple[str, object]:
    """Return the parameter that a word sets, and its value, perhaps taken from the next word."""
    option, has_value, value = word.partition("=")
    if option not in options or (has_value and not option.startswith("--")):
        raise _NotPlain
    name, kind = options[option]
    if kind is not bool:
        return name, _value(kind, value if has_value else _next(rest))
    if has_value:
        raise _NotPlain
    return name, True


def _next(rest: Iterator[str]) -> str:
    value = next(rest, "-")
    if value.startswith("-"):
        raise _NotPlain
    return value


def _value(kind: object, word: str) -> object:
    if kind is str:
        return word
    if isinstance(kind, type) and issubclass(kind, enum.StrEnum):
        with contextlib.suppress(ValueError):
            return kind(word)
    raise _NotPlain
