"""What the types of all fields stand on, and the bounds that several of them share."""

from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

RULES: Final = "x-kubernetes-validations"
"""Where a schema has its rules in CEL."""

LONGEST_NAME: Final = 253
"""Of a Kubernetes object."""


class ObjectStruct(msgspec.Struct, rename="camel", frozen=True, gc=False, omit_defaults=True):
    """Base of all parts of an object: camelCase in JSON, and what is absent is not written."""


def rule(expression: str, message: str, *, path: str = "", reason: str = "") -> dict[str, str]:
    """Return a rule in CEL.

    Args:
        expression: It must be true.
        message: For who is refused.
        path: The field at fault, from where the rule stands, such as `.script`.
        reason: One of the API's, `FieldValueForbidden` for instance.
    """
    found = {"rule": expression, "message": message, "fieldPath": path, "reason": reason}
    return {key: text for key, text in found.items() if text}


def unchanged(field: str) -> str:
    """Return the expression for an optional field that stays as it was created."""
    return (
        f"has(self.{field}) == has(oldSelf.{field}) && "
        f"(!has(self.{field}) || self.{field} == oldSelf.{field})"
    )


def text(most: int, description: str, **more: Any) -> Meta:
    """Return the bounds of a text: characters."""
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
