"""The reference of the settings, from the model; `--help` prints it, and docs/settings.md has it as tables."""

import json
import textwrap
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeGuard

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from slurmruntime.settings import values as settings_values

UNITS = {
    "_s": "seconds",
    "_min": "minutes",
    "_mib": "MiB",
    "_bytes": "bytes",
}
"""Suffix of a name → unit of its value."""

REQUIRED = "required"
"""Shown instead of a default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """One setting."""

    name: tuple[str, ...]
    accepts: str
    unit: str
    default: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A section, or the settings at the top level (name "")."""

    name: str
    meaning: str
    rows: tuple[SettingRow, ...]


def groups(model: type[BaseModel]) -> Iterator[Group]:
    """Yield the top level, then every section in order, and the entries of its lists as sections of their own."""
    sections: dict[str, type[BaseModel]] = {}
    top: list[SettingRow] = []
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            sections[name] = field.annotation
        else:
            top.append(_row((name,), field))
    yield Group(name="", meaning="", rows=tuple(top))
    for name, section in sections.items():
        fields = section.model_fields.items()
        entries = {inner: entry for inner, field in fields if (entry := _entry(field.annotation))}
        rows = tuple(_row((name, inner), field) for inner, field in fields if inner not in entries)
        yield Group(name=name, meaning=section.__doc__ or "", rows=rows)
        for inner, entry in entries.items():
            meaning = f"{entry.__doc__} {section.model_fields[inner].description}"
            yield Group(name=f"{name}.{inner}[]", meaning=meaning, rows=tuple(_entry_rows(entry)))


def plain_text(model: type[BaseModel]) -> str:
    """Return the reference for a terminal."""
    lines = ["settings (YAML names; in the environment SLURM_BRIDGE_SECTION__FIELD):"]
    for group in groups(model):
        lines += ["", f"{group.name}:  # {group.meaning}"] if group.name else [""]
        for row in group.rows:
            default = "" if row.default == REQUIRED else "default "
            facts = ", ".join(filter(None, (row.accepts, row.unit, default + row.default)))
            lines.append(f"{'  ' * len(row.name)}{row.name[-1]}: {facts}")
            lines.append(textwrap.indent(row.meaning, "  " * (len(row.name) + 2)))
    return "\n".join(lines)


def _entry(kind: object) -> type[BaseModel] | None:
    """Return the model of a list's entries; None if the setting is not a list of models."""
    if typing.get_origin(kind) is not tuple:
        return None
    inner = typing.get_args(kind)[0]
    return inner if _is_model(inner) else None


def _entry_rows(model: type[BaseModel], *above: str) -> Iterator[SettingRow]:
    """Yield the settings of an entry, with those of nested models in place."""
    for name, field in model.model_fields.items():
        part = next(filter(_is_model, (field.annotation, *typing.get_args(field.annotation))), None)
        if part is None:
            yield _row((*above, name), field)
            continue
        if all(inner.annotation is int for inner in part.model_fields.values()):
            yield _row((*above, name), field)
            continue
        for row in _entry_rows(part, *above, name):
            meaning = f"{field.description} {row.meaning}".strip()
            yield replace(row, meaning=meaning)


def _is_model(kind: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _row(name: tuple[str, ...], field: FieldInfo) -> SettingRow:
    default = field.get_default(call_default_factory=True)
    return SettingRow(
        name=name,
        accepts=_accepts(field.annotation, field.metadata),
        unit=next((unit for end, unit in UNITS.items() if name[-1].endswith(end)), ""),
        default=REQUIRED if field.is_required() else json.dumps(default),
        meaning=field.description or "",
    )


def _accepts(kind: object, metadata: list[object]) -> str:
    """Describe a type and its bounds."""
    match typing.get_origin(kind):
        case typing.Annotated:
            inner, *more = typing.get_args(kind)
            return _accepts(inner, [*metadata, *_flat(more)])
        case typing.Literal:
            return " or ".join(str(choice) or '""' for choice in typing.get_args(kind))
        case types.UnionType | typing.Union:
            inner, _none = typing.get_args(kind)
            return f"{_accepts(inner, metadata)}, or null"
        case origin if origin is tuple:
            inner = typing.get_args(kind)[0]
            if settings_values.TEXT_OR_TEXTS in metadata:
                return "text, or list of text"
            return f"list of {_accepts(inner, [])}"
        case origin if origin is dict:
            return "map of text to text"
        case _ if _is_model(kind):
            return f"integers {' and '.join(kind.model_fields)}"
        case _:
            return _SCALARS[kind] + "".join(_bounds(metadata))


_SCALARS: dict[object, str] = {bool: "true or false", int: "integer", float: "number", str: "text"}


def _flat(metadata: list[object]) -> Iterator[object]:
    for item in metadata:
        yield from item.metadata if isinstance(item, FieldInfo) else (item,)


def _bounds(metadata: list[object]) -> Iterator[str]:
    for bound in metadata:
        match bound:
            case annotated_types.Gt(gt=limit):
                yield f" > {limit}"
            case annotated_types.Ge(ge=limit):
                yield f" >= {limit}"
            case annotated_types.Le(le=limit):
                yield f" <= {limit}"
            case _:
                pass
