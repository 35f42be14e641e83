"""Whether the next step of a key is due, and what a person is told of it: pure. See `rings`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from slurmoperator.keys import rings
from slurmoperator.objects.labels import KEY_NUMBER_ANNOTATION
from slurmruntime.values import numbers
from slurmruntime.values.faults import Fault

Truth = Literal["True", "False"]

_MOST_NAMED: Final = 3
_MOST_KEYS: Final = rings.MOST_STEPS // rings.STEPS_PER_KEY
_SAYS: Final = (
    "the old key is gone",
    "all know the new key, and the old one signs",
    "the new key signs, and all know the old one",
)
"""What each step is about: that of a multiple of three first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHolder:
    """A pod with the key, or what makes such pods."""

    name: str
    """Kind and name."""
    step: int | None
    """That it has, or that it gives to each pod that it makes; None while it is not known that there is only one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationFacts:
    """Everything that the decision depends on."""

    step: int
    """In force: the last one that is written."""
    wanted: int | Fault | None
    """The number of the key that is asked for; None if none is."""
    elsewhere: Sequence[str] = ()
    """What has the key and runs elsewhere: kinds and names."""
    holders: Sequence[KeyHolder] = ()
    """All others that have it, if that matters: see `is_open`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationDecision:
    """What to do, and what is told."""

    writes: int | None = None
    """The step to be written now; None for none."""
    truth: Truth = "True"
    reason: str = ""
    """CamelCase; "" if there is nothing to tell."""
    message: str = ""


def wanted_key(annotations: Mapping[str, str]) -> int | Fault | None:
    """Return the number of the key that a Controller asks for, what is wrong with that, or None."""
    said = annotations.get(KEY_NUMBER_ANNOTATION)
    if said is None:
        return None
    found = numbers.whole(said, most=_MOST_KEYS)
    if found:
        return found
    at = f"metadata.annotations[{KEY_NUMBER_ANNOTATION}]"
    return Fault(at, f"expected a number from 1 to {_MOST_KEYS}, found {said}")


def is_due(step: int, wanted: int | Fault | None) -> bool:
    """Check whether steps are to follow, so that it matters who has which."""
    return not rings.is_rest(step) or wanted == rings.signer(step) + 1


def is_open(step: int, wanted: int | Fault | None, told: str) -> bool:
    """Check whether it matters who has which step.

    Args:
        step: in force.
        wanted: see `RotationFacts`.
        told: the message of the condition now. Once all have the last step of a key, nobody gets another one until the next is due.
    """
    return is_due(step, wanted) or (step > 0 and told != _in_force(step))


def decide(facts: RotationFacts) -> RotationDecision:
    """Return what to do about a key.

    A step follows only when everybody has the last one, so that never more than two neighbours are in use. What has begun is brought
    to its end, whatever is asked for then.
    """
    step = facts.step
    if is_due(step, facts.wanted) and facts.elsewhere:
        text = (
            f"{_list(facts.elsewhere)}: what runs elsewhere does not get its key from here, and would be cut off; "
            "with it, the key can only be changed while all daemons are stopped"
        )
        return RotationDecision(truth="False", reason="Elsewhere", message=text)
    behind = [holder.name for holder in facts.holders if holder.step != step]
    if behind:
        text = f"{_under_way(step)}; these do not have it yet: {_list(behind)}"
        return RotationDecision(truth="False", reason="Waiting", message=text)
    if not is_due(step, facts.wanted):
        return _at_rest(step, facts.wanted)
    return RotationDecision(
        writes=step + 1, truth="False", reason="Rotating", message=_under_way(step + 1)
    )


def _at_rest(step: int, wanted: int | Fault | None) -> RotationDecision:
    number = rings.signer(step)
    if isinstance(wanted, Fault):
        return RotationDecision(truth="False", reason="BadInput", message=wanted.text)
    if wanted is not None and wanted != number:
        text = (
            f"metadata.annotations[{KEY_NUMBER_ANNOTATION}]: expected {number}, the key in force, or {number + 1}, "
            f"the next one, found {wanted}: no key comes back, and none is left out"
        )
        return RotationDecision(truth="False", reason="BadInput", message=text)
    if step or wanted is not None:
        return RotationDecision(reason="InForce", message=_in_force(step))
    return RotationDecision()


def _in_force(step: int) -> str:
    return f"all have key {rings.signer(step)} only"


def _under_way(step: int) -> str:
    if not step:
        return "key 2 is asked for, after the first one"
    of = (step - 1) % rings.STEPS_PER_KEY + 1
    number = max(rings.known(step))
    return f"key {number}, step {of} of {rings.STEPS_PER_KEY}: {_SAYS[step % rings.STEPS_PER_KEY]}"


def _list(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    shown = ", ".join(names[:_MOST_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown
