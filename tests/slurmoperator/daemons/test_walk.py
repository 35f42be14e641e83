"""A look at an object of the control plane goes through few modules, and forwards: gather, plan, act, report."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from slurmoperator.daemons.loop import ControlLoop
from tests.make.walks import walk
from tests.slurmoperator.daemons.peers import PASSWORD, Leaders, part, secret
from tests.virtual_time import VirtualClock, run

ROOM = "slurmoperator.daemons"
WAY = ("loop", "gathering", "planning", "acting", "conditions")
BESIDES = {
    "Controller": {"partition_readings", "trials"},
    "Accounting": {"trials"},
    "RestApi": {"rest_tls"},
    "LoginSet": set[str](),
    "Token": set[str](),
}
"""What else a look at a kind enters: the verdicts of its daemon, what its Slurm has, its certificate."""
TWICE = {"acting": 2, "rest_tls": 2}
"""What is noted and then carried out, read and then planned."""
TYPES = {"part", "situation"}
"""Modules of nothing but types; a look reads their properties."""


def last_looks(monkeypatch: pytest.MonkeyPatch) -> dict[str, Counter[str]]:
    """The entries of the last look at an object of each kind, at rest."""
    reconcile, walks = ControlLoop.reconcile, dict[str, Counter[str]]()
    one_at_a_time = asyncio.Lock()

    async def watched(loop: ControlLoop, key: str) -> timedelta | None:
        async with one_at_a_time:
            with walk(ROOM) as entries:
                again = await reconcile(loop, key)
        kind = key.removeprefix("uid-").partition("-")[0]
        walks[kind] = Counter({name.removeprefix(f"{ROOM}."): n for name, n in entries.items()})
        return again

    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        for manifest in (
            PASSWORD,
            secret("site-sssd", sssd_conf=b"[sssd]"),
            part("Accounting"),
            part("Controller", prologScriptRefs=...),
            part("RestApi"),
            part("LoginSet"),
            part("Token"),
        ):
            leaders.api.put(manifest)
        await leaders.lead()

    monkeypatch.setattr(ControlLoop, "reconcile", watched)
    run(main)
    return walks


def test_a_look_at_rest_enters_five_modules_and_what_its_kind_has_besides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = last_looks(monkeypatch)

    assert BESIDES.keys() == looks.keys()
    for kind, entries in looks.items():
        assert {*WAY} | BESIDES[kind] == entries.keys() - TYPES, kind
        for name, count in entries.items():
            assert count == TWICE.get(name, 1) or name in TYPES, (kind, name)
