"""Read settings from YAML, the environment and secret files, and merge them by name.

Unknown names are faults. pydantic-settings is not used: it ignores unknown variables, stops at the
first value it cannot decode, and cannot report where an invalid value comes from.
"""

import difflib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

Name = tuple[str, ...]
"""A setting: (section, field), or (field,) at the top level."""

M = TypeVar("M", bound=BaseModel)


class Unreadable(Exception):
    """A source cannot be read at all; the message names it and the position of the error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingValue:
    """One value and its location, for messages."""

    value: object
    place: str


_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's loader if PyYAML was built with it: a policy of 500 rules takes 0.1 s, not 1 s."""


class _StrictLoader(_Loader):  # type: ignore[valid-type,misc]  # chosen at run time
    """Rejects a duplicate key, whose first value would be lost silently."""

    def unique_mapping(self, node: yaml.MappingNode) -> dict[Hashable, object]:
        seen: set[Hashable] = set()
        for written, _ in node.value:
            key = self.construct_object(written)
            if not isinstance(key, Hashable):
                continue  # construct_mapping refuses it
            if key in seen:
                line = written.start_mark.line + 1
                raise Unreadable(f"line {line}: {key} is a duplicate key")
            seen.add(key)
        mapping: dict[Hashable, object] = self.construct_mapping(node, deep=True)
        return mapping


_StrictLoader.add_constructor("tag:yaml.org,2002:map", _StrictLoader.unique_mapping)


def from_yaml(file: Path) -> dict[Name, SettingValue]:
    """Return the values in a YAML file, two levels deep; an empty section yields nothing.

    Raises:
        Unreadable: the file does not exist or does not contain a YAML mapping.
    """
    try:
        text = file.read_text(encoding="utf-8")
        content = yaml.load(text, _StrictLoader)  # noqa: S506  # is safe
    except OSError as error:
        raise Unreadable(f"{file}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # 2026-13-32 is a ValueError
        raise Unreadable(f"{file}: not YAML: {' '.join(str(error).split())}") from error
    except Unreadable as error:
        raise Unreadable(f"{file}: {error}") from error
    if not text.strip():
        raise Unreadable(
            f"{file}: the file is empty, as it is while being rewritten; to configure no settings, write {{}}"
        )
    if not isinstance(content, dict | None):
        raise Unreadable(f"{file}: expected sections with settings, found {shown(content)}")
    values: dict[Name, SettingValue] = {}
    for section, value in (content or {}).items():
        fields = value if isinstance(value, dict) else {}
        for field, inner in fields.items():
            values[str(section), str(field)] = SettingValue(
                value=inner, place=f"{section}.{field} in {file}"
            )
        if value is not None and not isinstance(value, dict):
            values[(str(section),)] = SettingValue(value=value, place=f"{section} in {file}")
    return values


def from_environment(
    environment: Mapping[str, str], *, prefix: str, top: Iterable[str]
) -> dict[Name, SettingValue]:
    """Return the values in variables `PREFIX_SECTION__FIELD`, whether such a setting exists or not.

    Other variables may share the prefix: the sandbox's, and those the kubelet sets for a Service
    called slurm-bridge-something
    (<https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables>).
    A variable is meant for us if it contains a double underscore or starts like one of the `top`
    names.
    """
    links = tuple(
        link
        for variable in environment
        if variable.endswith("_SERVICE_HOST")
        for link in (variable.removesuffix("HOST"), variable.removesuffix("SERVICE_HOST") + "PORT")
    )
    ours = tuple(prefix + name.split("_")[0].upper() for name in top)
    return {
        tuple(variable.removeprefix(prefix).lower().split("__")): SettingValue(
            value=value, place=variable
        )
        for variable, value in environment.items()
        if variable.startswith(prefix)
        and ("__" in variable or variable.startswith(ours))
        and not variable.startswith(links)
    }


def from_directory(directory: Path) -> dict[Name, SettingValue]:
    """Return the values in files named `section__field`, but for the kubelet's hidden ones; raise Unreadable."""
    try:
        return {
            tuple(file.name.split("__")): SettingValue(
                value=file.read_text(encoding="utf-8").strip(), place=str(file)
            )
            for file in sorted(directory.iterdir())
            if not file.name.startswith(".")
        }
    except OSError as error:
        raise Unreadable(f"{error.filename}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise Unreadable(f"{directory}: a file is not text: {error}") from error


class Invalid(Exception):
    """The settings are invalid; `faults` lists every fault."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(self.faults))


def read(
    model: type[M],
    *,
    config: Path | None,
    environment: Mapping[str, str],
    prefix: str,
    secrets_dir: Path | None,
    adapt: Callable[[dict[Name, SettingValue]], object] = lambda values: values,
) -> M:
    """Merge all sources, with later ones taking precedence, and validate the result.

    Args:
        adapt: brings the values of one source up to date, in place.

    Raises:
        Invalid: with every fault of every source.
    """
    sources = [partial(from_environment, environment, prefix=prefix, top=model.model_fields)]
    if config:
        sources.insert(0, partial(from_yaml, config))
    if secrets_dir:
        sources.append(partial(from_directory, secrets_dir))
    faults: list[str] = []
    merged: dict[Name, SettingValue] = {}
    for source in sources:
        try:
            layer = source()
        except Unreadable as error:
            faults.append(str(error))
        else:
            adapt(layer)
            faults.extend(_unknown(layer, model))
            merged |= layer
    try:
        settings = model.model_validate(_nested(merged, model))
    except ValidationError as error:
        raise Invalid([*faults, *_in_words(error, merged)]) from error
    if faults:
        raise Invalid(faults)
    return settings


def names(model: type[BaseModel], *above: str) -> Iterator[Name]:
    """Yield the name of every setting of a model of sections, in order."""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from names(field.annotation, *above, name)
        else:
            yield (*above, name)


def _unknown(merged: Mapping[Name, SettingValue], model: type[BaseModel]) -> Iterator[str]:
    """Yield a fault for each unknown name, suggesting the setting that may have been meant."""
    known = {".".join(name): name for name in names(model)}
    for name, item in merged.items():
        if name not in known.values():
            close = difflib.get_close_matches(".".join(name), known, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            yield f"{item.place}: no such setting{hint}"


def _nested(merged: Mapping[Name, SettingValue], model: type[BaseModel]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for *section, field in (name for name in names(model) if name in merged):
        into = values.setdefault(section[0], {}) if section else values
        into[field] = merged[*section, field].value
    return values


def _in_words(error: ValidationError, merged: Mapping[Name, SettingValue]) -> Iterator[str]:
    """Yield a fault for each invalid value, with its location, and for each invalid combination."""
    for fault in error.errors(include_url=False):
        path = fault["loc"]
        name = tuple(str(part) for part in path[:2])
        what = _WORDS.get(fault["type"], fault["msg"].removeprefix("Value error, "))
        known = next((prefix for prefix in (name, name[:1]) if prefix in merged), None)
        if known is None:
            yield f"{'.'.join(name)}: {what}" if name else what
            continue
        actual = "" if fault["type"] == "missing" else f", found {shown(fault['input'])}"
        where = _inside(merged[known].place, known, path[len(known) :])
        yield f"{where}: {what[0].lower()}{what[1:]}{actual}"


_WORDS = {"extra_forbidden": "no such setting", "missing": "is missing"}
_LONGEST_SHOWN = 200


def shown(value: object) -> str:
    """Return a value as messages show it, whatever it is."""
    try:
        text = repr(value)
    except RecursionError:
        text = "values nested too deep"
    except ValueError:  # a number with more digits than Python converts
        text = type(value).__name__
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _inside(place: str, name: Name, path: tuple[int | str, ...]) -> str:
    """Return the location of a part of a value: `policy.rules[3].account in config.yaml`."""
    inner = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    dotted = ".".join(name)
    return (
        f"{dotted}{inner}{place.removeprefix(dotted)}"
        if place.startswith(dotted)
        else place + inner
    )
