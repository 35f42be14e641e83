"""What an action changes in a placeholder's identity."""

from collections.abc import Callable
from functools import partial
from typing import assert_never

from bridge.domain.lifecycle import outcome
from bridge.domain.lifecycle.actions import Enlist, Record
from bridge.domain.model import identities
from bridge.domain.model.identities import Identity
from bridge.domain.model.pods import Pod


def of(pod: Pod, action: Enlist | Record) -> Callable[[Identity], Identity]:
    """Return the change, to be applied to the identity as it is by then."""
    match action:
        case Enlist(pods=pods, alive=alive):
            return partial(identities.enlist, pods=pods, alive=alive)
        case Record(outcome=how):
            return partial(identities.record, pod=pod.uid, how=outcome.encode(how))
        case unreachable:
            assert_never(unreachable)
