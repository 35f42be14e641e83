"""The base of all types of our objects, and bounds that several fields share."""

from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

RULES: Final = "x-kubernetes-validations"
"""The key of a schema's rules in CEL."""

LONGEST_NAME: Final = 253
"""Longest name of a Kubernetes object."""


class ObjectStruct(msgspec.Struct, rename="camel", frozen=True, gc=False, omit_defaults=True):
    """Base of all parts of an object: camelCase in JSON, and absent fields are not written."""


def rule(expression: str, message: str, *, path: str = "", reason: str = "") -> dict[str, str]:
    """Return a rule in CEL.

    Args:
        path: The field at fault, relative to the rule, such as `.script`.
        reason: One of the API's, for instance `FieldValueForbidden`.
    """
    entries = {"rule": expression, "message": message, "fieldPath": path, "reason": reason}
    return {key: text for key, text in entries.items() if text}


def unchanged(field: str) -> str:
    """Return the expression for an optional field that stays as it was created."""
    return (
        f"has(self.{field}) == has(oldSelf.{field}) && "
        f"(!has(self.{field}) || self.{field} == oldSelf.{field})"
    )


def text(most: int, description: str, **more: Any) -> Meta:
    """Return the bounds of a text, in characters."""
    return Meta(max_length=most, description=description, **more)


Moment = Annotated[datetime, Meta(tz=True)]
"""A point in time, with its zone."""

ObjectName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=LONGEST_NAME,
        pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        description="Name of an object in the same namespace.",
    ),
]
