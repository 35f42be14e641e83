"""Each write of the control plane's loop fails in turn, and its leader dies at each: all comes out the same."""

import base64
import copy
from collections.abc import Callable
from typing import Any

import pytest

from slurmclient.transport import jwt
from slurmoperator.rendering.trying import WRITE_FILE
from tests.make.trouble import Dead, Fault, Trouble, dying
from tests.slurmoperator.daemons.peers import PASSWORD, AppliedTo, Leaders, controller, part, secret
from tests.virtual_time import VirtualClock, run

pytestmark = pytest.mark.slow

ELSEWHERE = {"external": True, "externalConfig": {"host": "slurm.example.org", "port": 6817}}
MONITORED = {"enabled": True, "serviceMonitor": {"enabled": True}}
SSSD = secret("site-sssd", sssd_conf=b"[sssd]")
SIGNING = secret("site-auth-jwt", jwt_key=b"k" * 64)


def controller_first(api: AppliedTo) -> None:
    api.put(controller(metrics=MONITORED))


def controller_then(api: AppliedTo) -> None:
    api.change("Controller", "site", metrics=..., **ELSEWHERE)


def accounting_first(api: AppliedTo) -> None:
    api.put(PASSWORD)
    api.put(part("Accounting"))


def accounting_then(api: AppliedTo) -> None:
    api.change("Accounting", "site", **ELSEWHERE)


def rest_api_first(api: AppliedTo) -> None:
    api.put(controller())
    api.put(part("RestApi"))


def rest_api_then(api: AppliedTo) -> None:
    api.change("RestApi", "site", replicas=3)


def login_set_first(api: AppliedTo) -> None:
    for each in (controller(), SSSD, part("LoginSet")):
        api.put(each)


def login_set_then(api: AppliedTo) -> None:
    api.change("LoginSet", "site", replicas=2, extraSshdConfig="MaxSessions 3")


def token_first(api: AppliedTo) -> None:
    api.put(SIGNING)
    api.put(part("Token"))


def token_then(api: AppliedTo) -> None:
    api.change("Token", "site", lifetime="2h")


Change = Callable[[AppliedTo], None]
KINDS: dict[str, tuple[Change, Change]] = {
    "Controller": (controller_first, controller_then),
    "Accounting": (accounting_first, accounting_then),
    "RestApi": (rest_api_first, rest_api_then),
    "LoginSet": (login_set_first, login_set_then),
    "Token": (token_first, token_then),
}
MOST_WRITES = 24
"""More than any of them takes."""


async def undisturbed(clock: VirtualClock, kind: str) -> Leaders:
    first, then = KINDS[kind]
    leaders = Leaders(clock)
    first(leaders.api)
    await leaders.lead()
    then(leaders.api)
    await leaders.lead()
    return leaders


def outcome(leaders: Leaders, kind: str) -> dict[str, Any]:
    """All that there is, without what differs from one run to the next: ids, versions, times and random bytes."""
    found: dict[str, Any] = {}
    for where, each in leaders.api.objects.items():
        kept = copy.deepcopy(each)
        meta = kept["metadata"]
        for field in ("uid", "resourceVersion", "generation"):
            meta.pop(field, None)
        meta.get("annotations", {}).pop("slurm-bridge.dev/applied", None)
        if kept["kind"] == "Secret":
            data = kept.get("data", {})
            kept["data"] = len(data) if meta["name"].endswith("-ca") else sorted(data)
        elif WRITE_FILE in kept.get("data", {}):
            kept["data"][WRITE_FILE] = bool(kept["data"][WRITE_FILE])
        elif "ca.crt" in kept.get("data", {}):
            kept["data"]["ca.crt"] = kept["data"]["ca.crt"].count("BEGIN")
        status = kept.get("status", {})
        status.pop("issuedAt", None)
        status.pop("observedGeneration", None)
        for condition in status.get("conditions", ()):
            del condition["lastTransitionTime"]
            if kind == "Token":
                condition.pop("message", None)
        found[where] = kept
    return found


def check(leaders: Leaders, expected: dict[str, Any], kind: str, keys: dict[str, Any]) -> None:
    assert expected == outcome(leaders, kind)
    assert "True" == leaders.api.condition(kind, "Ready")[0]
    secrets = leaders.api.of("Secret")
    for name, data in keys.items():
        assert data == secrets[name]["data"], "a key was made anew"
    if kind == "Token":
        signed = base64.b64decode(secrets["alice-token"]["data"]["token"]).decode()
        issued, expires = jwt.issued_at(signed), jwt.expires_at(signed)
        assert issued is not None
        assert expires is not None
        told = leaders.api.of("Token")["site"]["status"]["issuedAt"]
        assert issued.strftime("%Y-%m-%dT%H:%M:%SZ") == told
        assert 7200 == (expires - issued).total_seconds()


def keys_of(leaders: Leaders) -> dict[str, Any]:
    """What is made once."""
    return {
        name: each["data"] for name, each in leaders.api.of("Secret").items() if "immutable" in each
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", Fault)
def test_whatever_write_of_the_control_plane_fails_it_comes_out_the_same(
    fault: Fault, kind: str
) -> None:
    async def main(clock: VirtualClock) -> None:
        calm = await undisturbed(clock, kind)
        expected = outcome(calm, kind)
        writes = len(calm.trouble.writes)
        assert 3 <= writes <= MOST_WRITES
        first, then = KINDS[kind]
        for at in range(1, writes + 1):
            leaders = Leaders(clock, Trouble(fault, at=at))
            first(leaders.api)
            await leaders.lead()
            keys = keys_of(leaders)
            then(leaders.api)
            await leaders.lead()
            assert len(leaders.trouble.writes) >= at
            check(leaders, expected, kind, keys)

    run(main)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
def test_a_leader_of_the_control_plane_may_die_at_any_write(kind: str, *, is_done: bool) -> None:
    async def main(clock: VirtualClock) -> None:
        calm = await undisturbed(clock, kind)
        expected = outcome(calm, kind)
        for at in range(1, len(calm.trouble.writes) + 1):
            leaders = Leaders(clock)
            died = dying(leaders.trouble, at, is_done=is_done)
            keys: dict[str, Any] = {}
            for change in KINDS[kind]:
                change(leaders.api)
                keys = keys_of(leaders)
                try:
                    await leaders.lead()
                except* Dead:
                    await leaders.lead()
            assert died, "there is a write at which it did not die"
            check(leaders, expected, kind, keys)

    run(main)
