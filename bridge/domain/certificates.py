"""Our own certificates: when a CA gets a successor, which of them signs, and what has to be signed anew.

A successor is made at half of a CA's life and published beside it from then on; it signs from two thirds on. So whoever
reads what is published only now and then (kubelets show a changed Secret after a minute, kube-scheduler reads its CA at
start) trusts both long before the first certificate of the new one turns up. The old CA is published until its end.

Keys and certificates themselves never get here (`bridge.process.pki`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

SUCCESSOR_AT = 1 / 2
SIGNS_AT = RENEWED_AT = 2 / 3
"""Shares of a life."""

SETTLED_AFTER = timedelta(minutes=10)
"""For so long a CA that was made late is published before it signs: kubelets refresh mounted Secrets within two minutes."""


CLOCK_SKEW = timedelta(minutes=5)
"""Certificates are good from so much before they are made: the reader's clock may be behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """From when to when a certificate is good."""

    made_at: datetime
    ends_at: datetime

    def holds(self, now: datetime) -> bool:
        """Check whether the certificate is good now; a clock that was ahead makes one that is not good yet."""
        return self.made_at - CLOCK_SKEW <= now < self.ends_at

    def at(self, share: float) -> datetime:
        """The moment at which so much of its life is over."""
        return self.made_at + share * (self.ends_at - self.made_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """A CA of ours."""

    id: str
    """Fingerprint of its certificate."""
    term: Validity

    @property
    def settled_at(self) -> datetime:
        """When everybody has had the time to learn of it."""
        return self.term.made_at + min(SETTLED_AFTER, (self.term.ends_at - self.term.made_at) / 12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What a server or client of ours shows at present."""

    issuer: str
    """`Authority.id`; "" if none of ours has signed it."""
    term: Validity
    hosts: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationPlan:
    """What is to be done, in this order; the rest stays as it is."""

    makes_authority: bool
    trusted: tuple[str, ...]
    """The CAs to publish, the oldest first; those left out have ended."""
    signer: str
    """Signs from now on; "" while there is none."""
    renewals: Mapping[str, str]
    """Whose certificate to sign anew, and why."""


def decide(
    now: datetime,
    authorities: Sequence[Authority],
    certificates: Mapping[str, Certificate | None],
    hosts: Mapping[str, frozenset[str]],
    published: frozenset[str],
) -> RotationPlan:
    """Plan what comes next.

    Args:
        now: the wall clock.
        authorities: all that there are, in any order.
        certificates: of each part what it has now; None: nothing readable.
        hosts: of each part the names and addresses its certificate must be good for.
        published: ids of the CAs that the API server has been told to trust before now.
    """
    living = sorted(
        (authority for authority in authorities if authority.term.holds(now)),
        key=lambda authority: (authority.term.made_at, authority.id),
    )
    newest = living[-1] if living else None
    signer = _signer(now, living, published)
    return RotationPlan(
        makes_authority=newest is None or now >= newest.term.at(SUCCESSOR_AT),
        trusted=tuple(authority.id for authority in living),
        signer=signer,
        renewals={
            part: why
            for part, wanted in hosts.items()
            if signer and (why := _stale(now, certificates.get(part), signer, wanted))
        },
    )


def _signer(now: datetime, living: Sequence[Authority], published: frozenset[str]) -> str:
    if not living:
        return ""
    newest, elders = living[-1], living[:-1]
    if not elders:
        return newest.id
    elder = elders[-1]
    may_sign = newest.id in published and now >= max(elder.term.at(SIGNS_AT), newest.settled_at)
    return newest.id if may_sign else elder.id


def _stale(
    now: datetime, certificate: Certificate | None, signer: str, hosts: frozenset[str]
) -> str:
    if certificate is None:
        return "there is none"
    if now < certificate.term.made_at - CLOCK_SKEW:
        return "it is not valid yet: a clock was ahead when it was made"
    if certificate.issuer != signer:
        return "another CA signs now"
    if certificate.hosts != hosts:
        return "its names have changed"
    if now >= certificate.term.at(RENEWED_AT):
        return "two thirds of its life are over"
    return ""
