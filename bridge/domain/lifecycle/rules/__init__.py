"""The cells of the lifecycle's table: each rule says what to do in one situation, and why.

A rule's docstring is its text in `docs/lifecycle.md`; anything else about it is a comment. No rule
asks whether the view is fresh: `lifecycle.decide` holds back actions that were decided on a stale
one.
"""

from bridge.domain.lifecycle.rules.answers import do, wait
from bridge.domain.lifecycle.rules.ending import (
    cancel,
    cancel_spares,
    complete,
    finish_cancel,
    hold,
    let_stop,
    release,
    settle,
)
from bridge.domain.lifecycle.rules.lost import adopt, await_restore, keep_forgotten, may_be_adopted
from bridge.domain.lifecycle.rules.placed import (
    await_binding,
    confirm,
    evict,
    hold_back,
    keep_suspended,
    tell_paused,
)
from bridge.domain.lifecycle.rules.waiting import (
    SUBMITTED_AGAIN_AFTER,
    answer_end,
    assign,
    awaits_nodes,
    submit,
    tell_unplaced,
    tell_why,
)

__all__ = [
    "SUBMITTED_AGAIN_AFTER",
    "adopt",
    "answer_end",
    "assign",
    "await_binding",
    "await_restore",
    "awaits_nodes",
    "cancel",
    "cancel_spares",
    "complete",
    "confirm",
    "do",
    "evict",
    "finish_cancel",
    "hold",
    "hold_back",
    "keep_forgotten",
    "keep_suspended",
    "let_stop",
    "may_be_adopted",
    "release",
    "settle",
    "submit",
    "tell_paused",
    "tell_unplaced",
    "tell_why",
    "wait",
]
