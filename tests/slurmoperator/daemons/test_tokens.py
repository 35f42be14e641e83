"""Tokens: signed for whom the administrator allows, replaced in time, and written nowhere else."""

import base64
from datetime import timedelta
from typing import Any

import pytest

from slurmclient.transport import jwt
from slurmoperator.keys import token_policy
from slurmoperator.objects.labels import TAKE_OVER_ANNOTATION
from tests.slurmoperator.daemons.peers import Leaders, part, secret
from tests.virtual_time import VirtualClock, run

KEY = b"k" * 64
SIGNING = secret("site-auth-jwt", jwt_key=KEY)
HOUR_S = 3600


async def with_token(clock: VirtualClock, **changes: Any) -> Leaders:
    leaders = Leaders(clock)
    leaders.api.put(SIGNING)
    leaders.api.put(part("Token", **changes))
    await leaders.lead()
    return leaders


def token(leaders: Leaders, name: str = "alice-token", key: str = "token") -> str:
    return base64.b64decode(leaders.api.of("Secret")[name]["data"][key]).decode()


def test_it_is_signed_and_told_and_written_once() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await with_token(clock)

        signed = token(leaders)
        assert "alice" == jwt.user_of(signed)
        issued, expires = jwt.issued_at(signed), jwt.expires_at(signed)
        assert issued is not None
        assert expires == issued + timedelta(minutes=90)
        assert signed == jwt.mint(
            KEY, user="alice", now_s=int(issued.timestamp()), lifetime_s=90 * 60
        )
        owner = leaders.api.of("Secret")["alice-token"]["metadata"]["ownerReferences"][0]
        assert ("Token", True) == (owner["kind"], owner["controller"])
        status = leaders.api.of("Token")["site"]["status"]
        assert issued.strftime("%Y-%m-%dT%H:%M:%SZ") == status["issuedAt"]
        assert ("True", "AllReady", f"valid until {expires:%Y-%m-%dT%H:%M:%SZ}") == (
            leaders.api.condition("Token", "Ready")
        )
        count = len(leaders.trouble.writes)
        await leaders.lead()
        assert [] == leaders.trouble.writes[count:]
        assert signed not in str(leaders.api.of("Token"))

    run(main)


@pytest.mark.parametrize("lifetime", ["10s", "15m", "2h"])
def test_it_is_replaced_before_it_ends(lifetime: str) -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await with_token(clock, lifetime=lifetime)
        expires = jwt.expires_at(token(leaders))
        assert expires is not None
        lifetime_s = {"10s": 10, "15m": 900, "2h": 7200}[lifetime]
        left: list[float] = []

        def look() -> None:
            found = jwt.expires_at(token(leaders))
            assert found is not None
            left.append((found - clock.now()).total_seconds())

        looks = {each * lifetime_s / 7: look for each in range(1, 21)}
        before = len(leaders.trouble.writes)
        await leaders.lead(for_s=3 * lifetime_s, then=looks)

        assert min(left) > lifetime_s * 0.05, "it ended, or nearly so"
        renewed = [w for w in leaders.trouble.writes[before:] if w.endswith("/alice-token")]
        assert 3 <= len(renewed) <= 6, "it is replaced too often"

    run(main)


def test_one_that_is_not_to_be_renewed_ends() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await with_token(clock, lifetime="15m", refresh=False)
        signed = token(leaders)
        await leaders.lead(for_s=2000)
        assert signed == token(leaders)

        status, reason, message = leaders.api.condition("Token", "Ready")
        assert ("False", "Expired") == (status, reason)
        assert "it expired" in message

    run(main)


@pytest.mark.parametrize(
    "change", [{"username": "bob"}, {"lifetime": "2h"}, {"jwtKeyRef": {"name": "o", "key": "k"}}]
)
def test_another_wish_gives_another_token(change: dict[str, Any]) -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await with_token(clock)
        before = token(leaders)
        leaders.token_users = {"*": "alice, bob"}
        leaders.api.put(secret("o", k=b"o" * 32))
        leaders.api.change("Token", "site", **change)
        await leaders.lead()

        assert before != token(leaders)
        assert change.get("username", "alice") == jwt.user_of(token(leaders))

    run(main)


@pytest.mark.parametrize(
    ("users", "spec", "told"),
    [
        pytest.param(
            {}, {}, "spec.username: namespace slurm may not have a token", id="nothing is allowed"
        ),
        pytest.param({"team": "*"}, {}, "token of user alice", id="allowed elsewhere"),
        pytest.param({"slurm": "*"}, {"username": "root"}, "token of user root", id="root"),
        pytest.param({"slurm": "*"}, {"username": "Root"}, "token of user Root", id="root by case"),
        pytest.param({"slurm": "*"}, {"username": "slurm"}, "of user slurm", id="SlurmUser"),
        pytest.param({"slurm": "*"}, {"username": "0"}, "of user 0", id="root by number"),
        pytest.param({"slurm": "*"}, {"username": "401"}, "of user 401", id="SlurmUser by number"),
        pytest.param({"slurm": "*"}, {"username": "00"}, "of user 00", id="root by another number"),
        pytest.param({"slurm": "*"}, {"lifetime": "25h"}, "expected at most 86400 s", id="long"),
        pytest.param({"slurm": "*"}, {"lifetime": "9999ms"}, "10s or longer", id="short"),
        pytest.param(
            {"slurm": "*"},
            {"secretRef": {"name": "site-auth-jwt", "key": "jwt.key"}},
            "spec.secretRef.name: expected a different Secret",
            id="over the key itself",
        ),
        pytest.param(
            {"slurm": "*"},
            {"secretRef": ..., "username": "a_b"},
            "the default site-jwt-a_b is not a valid name",
            id="a name that no Secret can have",
        ),
        pytest.param(
            {"slurm": "*"},
            {"jwtKeyRef": {"name": "short", "key": "password"}},
            "expected at least 32 bytes in password of Secret short, found 7",
            id="a password for a key",
        ),
        pytest.param(
            {"slurm": "*"},
            {"jwtKeyRef": {"name": "none", "key": "k"}},
            "spec.jwtKeyRef.name: there is no Secret none",
            id="no key",
        ),
    ],
)
def test_what_is_not_allowed_is_told_and_not_signed(
    users: dict[str, str], spec: dict[str, Any], told: str
) -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        leaders.token_users = users
        for each in (SIGNING, secret("short", password=b"hunter2"), part("Token", **spec)):
            leaders.api.put(each)
        before = leaders.api.of("Secret")
        await leaders.lead()

        status, reason, message = leaders.api.condition("Token", "Accepted")
        assert ("False", "BadInput") == (status, reason)
        assert told in message
        assert before == leaders.api.of("Secret")

    run(main)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, 900),
        ("90s", 90),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("2m0.5s", 120),
        ("1us999ns", 0),
        ("9" * 60 + "h", int("9" * 60) * 3600),
    ],
)
def test_durations_are_read_as_go_writes_them(text: str | None, expected: int) -> None:
    assert expected == token_policy.lifetime_s(text)


def test_who_is_named_may_have_root() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        leaders.token_users = {"slurm": "alice,root"}
        leaders.api.put(SIGNING)
        leaders.api.put(part("Token", username="root", secretRef=...))
        await leaders.lead()
        assert "root" == jwt.user_of(token(leaders, "site-jwt-root", "SLURM_JWT"))

    run(main)


def test_no_other_secret_is_written_whatever_a_token_says() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        theirs = secret("alice-token", token=b"theirs")
        grasping = part("Token")
        grasping["metadata"]["annotations"] = {TAKE_OVER_ANNOTATION: "true"}
        for each in (SIGNING, theirs, grasping):
            leaders.api.put(each)
        await leaders.lead()

        assert "theirs" == token(leaders)
        status, reason, message = leaders.api.condition("Token", "Accepted")
        assert ("False", "NotOurs") == (status, reason)
        assert "choose another name" in message

    run(main)
