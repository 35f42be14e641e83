"""Parsing FIELD=VALUE."""

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

_LISTS: Final = frozenset({"state", "flags", "users", "accounts"})
"""Fields that Slurm wants as lists; their values are split at commas."""


def parse(texts: Iterable[str] | None) -> dict[str, Any]:
    """Return fields by name; a value that is JSON is decoded, any other is text.

    Raises:
        ValueError: If one is not FIELD=VALUE.
    """
    return {name: _value(name, text) for name, text in map(pair, texts or ())}


def pair(text: str) -> tuple[str, str]:
    """Split FIELD=VALUE.

    Raises:
        ValueError: If it has another form.
    """
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"\w+", name):
        raise ValueError(f"expected FIELD=VALUE, got {text!r}")
    return name, value


def _value(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text.split(",") if name in _LISTS else text
