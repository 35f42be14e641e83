"""When CAs follow one another and certificates are signed anew; a property test walks through the years."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmruntime.values import certificates
from slurmruntime.values.certificates import (
    SETTLED_AFTER,
    Authority,
    Certificate,
    RotationPlan,
    Validity,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
HOSTS = {"webhook": frozenset({"webhook.svc"}), "extender": frozenset({"extender.svc"})}


def authority(name: str, *, made: float = 0, days: float = 300) -> Authority:
    made_at = START + made * DAY
    return Authority(id=name, term=Validity(made_at=made_at, ends_at=made_at + days * DAY))


def leaf(issuer: str, *, made: float = 0, days: float = 90, host: str = "") -> Certificate:
    made_at = START + made * DAY
    term = Validity(made_at=made_at, ends_at=made_at + days * DAY)
    return Certificate(issuer=issuer, term=term, hosts=frozenset({host or "webhook.svc"}))


def decide(
    day: float,
    *authorities: Authority,
    webhook: Certificate | None = None,
    published: str = "",
) -> RotationPlan:
    return certificates.decide(
        START + day * DAY,
        authorities,
        {"webhook": webhook},
        {"webhook": HOSTS["webhook"]},
        frozenset(published.split()),
    )


def test_a_new_cluster_needs_a_ca_first() -> None:
    plan = decide(0)

    assert RotationPlan(makes_authority=True, trusted=(), signer="", renewals={}) == plan


def test_the_only_ca_signs_at_once() -> None:
    plan = decide(0, authority("a"))

    assert not plan.makes_authority
    assert ("a", {"webhook": "there is none"}) == (plan.signer, plan.renewals)


@pytest.mark.parametrize(
    ("certificate", "why"),
    [
        (leaf("a", made=10), ""),
        (leaf("a", made=-15), ""),
        (leaf("a", made=-60), "two thirds of its life are over"),
        (leaf("a", made=-100), "two thirds of its life are over"),
        (leaf("stranger", made=10), "another CA signs now"),
        (leaf("a", made=10, host="elsewhere"), "its names have changed"),
    ],
)
def test_a_certificate_is_signed_anew_only_for_a_reason(certificate: Certificate, why: str) -> None:
    plan = decide(20, authority("a"), webhook=certificate)

    assert ({"webhook": why} if why else {}) == plan.renewals


def test_a_successor_is_made_at_half_a_life_and_does_not_sign_yet() -> None:
    old, new = authority("old"), authority("new", made=150)

    assert not decide(149.9, old).makes_authority
    assert decide(150, old).makes_authority
    plan = decide(150.1, old, new, published="old new")
    assert not plan.makes_authority
    assert (("old", "new"), "old") == (plan.trusted, plan.signer)


def test_the_successor_signs_from_two_thirds_on_where_it_is_published() -> None:
    old, new = authority("old"), authority("new", made=150)
    webhook = leaf("old", made=199)

    assert "old" == decide(199.9, old, new, webhook=webhook, published="old new").signer
    assert "old" == decide(200, old, new, webhook=webhook, published="old").signer
    plan = decide(200, old, new, webhook=webhook, published="old new")
    assert ("new", {"webhook": "another CA signs now"}) == (plan.signer, plan.renewals)
    assert ("old", "new") == plan.trusted


def test_a_late_successor_settles_before_it_signs() -> None:
    old, new = authority("old"), authority("new", made=250)
    settled = 250 + SETTLED_AFTER / DAY

    assert "old" == decide(250.001, old, new, published="old new").signer
    assert "new" == decide(settled, old, new, published="old new").signer


def test_what_has_ended_is_trusted_no_longer() -> None:
    plan = decide(300, authority("old"), authority("new", made=150))

    assert (("new",), "new") == (plan.trusted, plan.signer)


@settings(deadline=None)
@given(
    look_days=st.floats(1, 20),
    leaf_days=st.floats(30, 100),
    outages=st.lists(st.tuples(st.floats(0, 900), st.floats(0, 40)), max_size=4),
)
def test_whoever_is_at_most_a_settling_time_behind_always_trusts(
    look_days: float, leaf_days: float, outages: list[tuple[float, float]]
) -> None:
    """Through three generations, with outages of the controllers: what is shown was signed by what was published before."""
    authorities: list[Authority] = []
    shown: Certificate | None = None
    published: frozenset[str] = frozenset()
    day = 0.0
    while day < 900:
        now = START + day * DAY
        for _ in range(4):
            plan = certificates.decide(
                now, authorities, {"webhook": shown}, {"webhook": HOSTS["webhook"]}, published
            )
            authorities = [a for a in authorities if a.id in plan.trusted]
            if plan.makes_authority:
                authorities.append(authority(f"{len(authorities)}@{day}", made=day))
            if plan.renewals:
                assert plan.signer in published or len(authorities) == 1
                signer = next(a for a in authorities if a.id == plan.signer)
                ends_at = min(now + leaf_days * DAY, signer.term.ends_at)
                term = Validity(made_at=now, ends_at=ends_at)
                shown = Certificate(issuer=plan.signer, term=term, hosts=HOSTS["webhook"])
            published = frozenset(a.id for a in authorities)
        assert shown is not None
        assert len(authorities) <= 2
        assert now < shown.term.ends_at
        assert shown.issuer in published
        day += look_days + next((long for at, long in outages if day <= at < day + look_days), 0.0)


def test_what_a_clock_that_was_ahead_has_made_is_made_again() -> None:
    plan = decide(10, authority("ca"), authority("future", made=400), webhook=leaf("ca", made=200))

    assert ("ca",) == plan.trusted
    assert "ca" == plan.signer
    assert "not valid yet" in plan.renewals["webhook"]
