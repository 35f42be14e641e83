"""Conditions, in the status of our objects."""

from typing import Annotated, Final, Literal

from msgspec import Meta

from slurmruntime.crd.fields import Moment, ObjectStruct, text

MOST_CONDITIONS: Final = 16
LONGEST_MESSAGE: Final = 4096

Number = Annotated[int, Meta(ge=0, le=2**53 - 1)]
"""A non-negative number that JSON represents exactly."""


class ObjectCondition(ObjectStruct, frozen=True):
    """`meta/v1 Condition`."""

    type: Annotated[
        str, Meta(min_length=1, max_length=316, description="What it is about, in one word.")
    ]
    status: Annotated[Literal["True", "False", "Unknown"], Meta(description="Whether it holds.")]
    reason: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=1024,
            pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
            description="Why, in one word.",
        ),
    ]
    last_transition_time: Annotated[Moment, Meta(description="When its status changed.")]
    message: Annotated[str, text(LONGEST_MESSAGE, "Why, in a sentence.")] = ""
    observed_generation: Annotated[
        Number | None, Meta(description="The metadata.generation that it is about.")
    ] = None
