"""Decide which step of a key daemons get, whether the next one is due, and how to report it: pure. See `rings`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from slurmoperator.keys import rings
from slurmoperator.objects.labels import KEY_NUMBER_ANNOTATION
from slurmoperator.objects.names import listed
from slurmoperator.objects.parts import KeyOfObject
from slurmruntime.values import numbers
from slurmruntime.values.faults import Fault, Refusal

KEY_CONDITION: Final = "SlurmKeyRotated"
"""On a Controller whose daemons' key was, or will be, replaced."""
Truth = Literal["True", "False"]

_MOST_NAMED: Final = 3
_MOST_KEYS: Final = rings.MOST_STEPS // rings.STEPS_PER_KEY
_ANY_STEP: Final = re.compile(r".+\.[0-9]+\.jwks")
_STEP_SUMMARIES: Final = (
    "the old key is gone",
    "every daemon accepts the new key, the old one signs",
    "the new key signs, every daemon accepts the old one",
)
"""By the step modulo `STEPS_PER_KEY`: the last step of a key comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRing:
    """A key and its steps, as they were read."""

    key: KeyOfObject
    """The key that the objects refer to."""
    steps: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Contents of the Secret with the steps."""
    version: str = ""
    """Of that Secret; "" if it does not exist."""
    reported: int = 0
    """The last step that the status of a Controller shows."""

    @property
    def step(self) -> int:
        """The last step in the Secret, which is in force if it is intact; 0 for the key itself."""
        return rings.last_step(self.key.key, self.steps)

    @property
    def unwritable(self) -> str:
        """Why no step can be written; "" if one can."""
        foreign = sorted(name for name in self.steps if not _ANY_STEP.fullmatch(name))
        if not foreign:
            return ""
        names = ", ".join(foreign[:_MOST_NAMED])
        return f"Secret {rings.ring_secret(self.key.name)}: it has {names}, so it is not slurm-operator's: delete it"

    def keys(self) -> dict[int, bytes]:
        """Return the keys of the last step; none if they are not those that this step must have."""
        item = rings.ring_item(self.key.key, self.step)
        return rings.keys_of(self.step, self.steps.get(item, b"")) or {}


def names_key(reference: KeyOfObject | None, key: KeyOfObject) -> bool:
    """Check whether an object's reference is to this key."""
    return reference is not None and (reference.name, reference.key) == (key.name, key.key)


def usable_step(ring: KeyRing | None) -> int:
    """Return the step that daemons get; 0, the key itself, if there is no ring.

    Raises:
        Refusal: no daemon may get a key now.
    """
    if ring is None:
        return 0
    key, step = ring.key, ring.step
    at = f"Secret {rings.ring_secret(key.name)}"
    if step < ring.reported:
        text = (
            f"it has no {rings.ring_item(key.key, ring.reported)}, the key that the daemons use: restore it. They keep running, but "
            "none can be started. If the key is lost, delete all objects that use it and create them again"
        )
        raise Refusal(Fault(at, text))
    if step and not ring.keys():
        raise Refusal(Fault(at, f"{rings.ring_item(key.key, step)} was changed: restore it"))
    return step


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyHolder:
    """A pod with the key, or an object that creates such pods."""

    name: str
    step: int | None
    """The step in use, or given to each new pod; None while there may be several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationFacts:
    """Everything that the decision depends on."""

    step: int
    """The step in force: the last one written."""
    wanted: int | None
    """The number of the requested key; None if none is requested, or not in a valid way."""
    bad_request: str = ""
    """Why the request is invalid; "" if it is not."""
    elsewhere: tuple[str, ...] = ()
    """External objects with the key: kinds and names."""
    holders: tuple[KeyHolder, ...] = ()
    """All others that have the key, if that matters: see `is_open`."""
    unwritable: str = ""
    """Why no step can be written; "" if one can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationDecision:
    """What to do, and what to report."""

    writes: int | None = None
    """The step to write now; None for none."""
    truth: Truth = "True"
    reason: str = ""
    """CamelCase; "" if there is nothing to report."""
    message: str = ""


def requested(step: int, annotations: Mapping[str, str]) -> RotationFacts:
    """Return the facts about a key at a step of which a Controller requests what its annotations say."""
    text = annotations.get(KEY_NUMBER_ANNOTATION)
    number = None if text is None else numbers.integer(text, most=_MOST_KEYS) or None
    bad_request = ""
    if text is not None and number is None:
        at = f"metadata.annotations[{KEY_NUMBER_ANNOTATION}]"
        bad_request = f"{at}: expected a number from 1 to {_MOST_KEYS}, found {text}"
    return RotationFacts(step=step, wanted=number, bad_request=bad_request)


def is_due(step: int, wanted: int | None) -> bool:
    """Check whether another step must follow."""
    return not rings.is_complete(step) or wanted == rings.signing_key(step) + 1


def is_open(step: int, wanted: int | None, reported: str) -> bool:
    """Check whether it matters which daemon has which step.

    Once the condition's message (`reported`) says that all have the last step of a key, no daemon gets another until the next is due.
    """
    return is_due(step, wanted) or (step > 0 and reported != _in_force(step))


def decide(facts: RotationFacts) -> RotationDecision:
    """Return what to do about a key.

    A step follows only when every daemon has the one before, so that never more than two neighbouring steps are in use. A
    rotation that has begun is completed, whatever is requested then.
    """
    step = facts.step
    if is_due(step, facts.wanted) and facts.elsewhere:
        text = (
            f"another key would cut off {listed(facts.elsewhere, _MOST_NAMED)}: external daemons do not get their key from slurm-operator; "
            "change the key while all daemons are stopped"
        )
        return RotationDecision(truth="False", reason="Elsewhere", message=text)
    behind = [holder.name for holder in facts.holders if holder.step != step]
    if behind:
        text = f"{_under_way(step)}; waiting for {listed(behind, _MOST_NAMED)}"
        return RotationDecision(truth="False", reason="Waiting", message=text)
    if not is_due(step, facts.wanted):
        return _idle(facts)
    if facts.unwritable:
        return RotationDecision(truth="False", reason="Failing", message=facts.unwritable)
    return RotationDecision(
        writes=step + 1, truth="False", reason="Rotating", message=_under_way(step + 1)
    )


def _idle(facts: RotationFacts) -> RotationDecision:
    step, wanted = facts.step, facts.wanted
    number = rings.signing_key(step)
    if facts.bad_request:
        return RotationDecision(truth="False", reason="BadInput", message=facts.bad_request)
    if wanted is not None and wanted != number:
        text = (
            f"metadata.annotations[{KEY_NUMBER_ANNOTATION}]: expected {number}, the key in force, or {number + 1}, "
            f"the next one, found {wanted}: keys are neither reused nor skipped"
        )
        return RotationDecision(truth="False", reason="BadInput", message=text)
    if step or wanted is not None:
        return RotationDecision(reason="InForce", message=_in_force(step))
    return RotationDecision()


def _in_force(step: int) -> str:
    return f"every daemon uses key {rings.signing_key(step)}"


def _under_way(step: int) -> str:
    if not step:
        return "key 2 is requested, every daemon uses key 1"
    position = (step - 1) % rings.STEPS_PER_KEY + 1
    number = max(rings.accepted_keys(step))
    summary = _STEP_SUMMARIES[step % rings.STEPS_PER_KEY]
    return f"key {number}, step {position} of {rings.STEPS_PER_KEY}: {summary}"
