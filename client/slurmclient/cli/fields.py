"""FIELD=VALUE."""

import re
from typing import Any

import msgspec


def parsed(given: list[str] | None) -> dict[str, Any]:
    return {name: _value(name, text) for name, text in map(pair, given or ())}


def pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"\w+", name):
        raise ValueError(f"expected FIELD=VALUE, got {text!r}")
    return name, value


def _value(name: str, text: str) -> Any:
    """Read JSON, or else text; what Slurm wants as a list is split at commas."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text.split(",") if name in {"state", "flags", "users", "accounts"} else text
