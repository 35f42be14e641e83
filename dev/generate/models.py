"""Writing `models.py`: a struct for each object that can be read."""

import re
from dataclasses import dataclass
from typing import Final

from generate.decisions import CHANGED, NAMES, NOT_MOMENTS, NULLABLE, ROOTS, identifier
from generate.header import header
from generate.specification import JsonDict, Specification, kind_of

_OF_EVERY_ANSWER: Final = frozenset({"meta", "errors", "warnings"})
_ENCODING: Final = re.compile(
    r" \((?:\d\d bit (?:integer|floating point) number with flags|UNIX timestamp(?:[^()]|\([^)]*\))*)\)"
)
"""The part of a description that says how a number is written."""
_REPEATED: Final = re.compile(r"^(.+) \(\1\)$")
_SIMPLE: Final = {
    "string": ("str", '""'),
    "integer": ("int", "0"),
    "number": ("float", "0.0"),
    "boolean": ("bool", "False"),
    "object": ("dict[str, Any]", "field(default_factory=dict)"),
    "flags[]": ("frozenset[str]", "frozenset()"),
    "string[]": ("tuple[str, ...]", "()"),
    "integer[]": ("tuple[int, ...]", "()"),
    "object[]": ("tuple[dict[str, Any], ...]", "()"),
}
"""Types and defaults in Python, by kind."""


@dataclass(frozen=True, slots=True)
class _Field:
    type: str
    default: str


def models(spec: Specification) -> str:
    """Return the source of `models.py`."""
    structs = _Structs(spec)
    for root in ROOTS:
        structs.add(root)
    return "\n".join(
        [
            *header(
                spec,
                "Fields have the names of Slurm's REST API. Its units are unchanged: memory is in MiB,",
                "`time_limit` in minutes.",
            ),
            "from typing import Any",
            "",
            "from msgspec import field",
            "",
            "from slurmclient.wire.reading import Model",
            "from slurmclient.wire.values import Number, Time",
            "",
            "# fmt: off",
            *(f"\n\n{source}" for source in structs.sources.values()),
        ]
    )


class _Structs:
    """The sources of structs, each after those that it refers to."""

    def __init__(self, spec: Specification) -> None:
        self._spec = spec
        self._seen: set[str] = set()
        self.sources: dict[str, str] = {}
        """By name of the schema."""

    def add(self, schema: str) -> str:
        """Write a schema's struct unless it is there; return the name of its class."""
        name = "".join(NAMES.get(part) or _camel(part) for part in schema.split("__"))
        if schema not in self._seen:
            self._seen.add(schema)
            lines = [
                self._line(schema, key, value)
                for key, value in self._spec.schemas[schema].items()
                if key not in _OF_EVERY_ANSWER
            ]
            self.sources[schema] = "\n".join(
                [
                    f"class {name}(Model, frozen=True):",
                    f'    """Slurm\'s `{schema.replace("__", ".")}`."""',
                    "",
                    *lines,
                ]
            )
        return name

    def _line(self, schema: str, key: str, value: JsonDict) -> str:
        found = self._field(schema, key, value)
        python, default = identifier(key), found.default
        if python != key:
            factory = default.removeprefix("field(default_factory=").removesuffix(")")
            how = f"default_factory={factory}" if "factory" in default else f"default={default}"
            default = f'field(name="{key}", {how})'
        remark = _ENCODING.sub("", " ".join(value.get("description", "").split()))
        remark = _REPEATED.sub(r"\1", remark)
        return f"    {python}: {found.type} = {default}" + (f"  # {remark}" if remark else "")

    def _field(self, schema: str, key: str, value: JsonDict) -> _Field:
        kind = kind_of(self._spec, value)
        is_moment = "UNIX timestamp" in value.get("description", "") and key not in NOT_MOMENTS
        if (schema, key) in CHANGED:
            return _Field(CHANGED[schema, key], "0")
        if kind.endswith("no_val_struct") or (is_moment and kind == "integer"):
            return _Field("Time" if is_moment else "Number", "None")
        if kind in _SIMPLE:
            return _Field(*_SIMPLE[kind])
        if kind.endswith("[][]"):
            return _Field(f"tuple[tuple[{self.add(kind[:-4])}, ...], ...]", "()")
        if kind.endswith("[]"):
            return _Field(f"tuple[{self.add(kind[:-2])}, ...]", "()")
        name = self.add(kind)
        if (schema, key) in NULLABLE:
            return _Field(f"{name} | None", "None")
        return _Field(name, f"{name}()")


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
