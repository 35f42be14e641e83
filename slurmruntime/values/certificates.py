"""Rotation of our own CA and certificates: when a CA gets a successor, which signs, what to renew.

A successor is created halfway through a CA's life and published next to it; it starts signing at
two thirds. So readers that refresh the published CAs only now and then (kubelets pick up a changed
Secret after a minute, kube-scheduler reads its CA at startup) trust both before the first
certificate signed by the new one appears. The old CA stays published until it expires.

Keys and certificates themselves never get here (`slurmruntime.process.pki`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

LIFETIME = timedelta(days=90)
"""Of a certificate, as Let's Encrypt and cert-manager have it. Sites with other rules bring their own."""
AUTHORITY_LIFETIME = timedelta(days=3650)
"""Of a CA: kube-scheduler reads it at startup only, and may run for years."""

SUCCESSOR_AT = 1 / 2
SIGNS_AT = RENEWED_AT = 2 / 3
"""Fractions of a lifetime."""

SETTLED_AFTER = timedelta(minutes=10)
"""How long a CA that was created late is published before it signs: kubelets refresh mounted
Secrets within two minutes."""


CLOCK_SKEW = timedelta(minutes=5)
"""Certificates are valid from this long before they are made: the reader's clock may be behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """The period in which a certificate is valid."""

    made_at: datetime
    ends_at: datetime

    def holds(self, now: datetime) -> bool:
        """Check whether the certificate is valid now; one made by a clock that was ahead is not valid yet."""
        return self.made_at - CLOCK_SKEW <= now < self.ends_at

    def at(self, share: float) -> datetime:
        """Return the moment at which this share of its life is over."""
        return self.made_at + share * (self.ends_at - self.made_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """One of our CAs."""

    id: str
    """The fingerprint of its certificate."""
    term: Validity

    @property
    def settled_at(self) -> datetime:
        """When every reader has had time to learn of it."""
        return self.term.made_at + min(SETTLED_AFTER, (self.term.ends_at - self.term.made_at) / 12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The certificate that one of our servers or clients presents now."""

    issuer: str
    """`Authority.id`; "" if none of our CAs signed it."""
    term: Validity
    hosts: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationPlan:
    """What to do, in this order; everything else stays as it is."""

    makes_authority: bool
    trusted: tuple[str, ...]
    """The CAs to publish, oldest first; the ones left out have expired."""
    signer: str
    """The CA that signs from now on; "" while there is none."""
    renewals: Mapping[str, str]
    """Which certificates to renew, and why."""


def decide(
    now: datetime,
    authorities: Sequence[Authority],
    certificates: Mapping[str, Certificate | None],
    hosts: Mapping[str, frozenset[str]],
    published: frozenset[str],
) -> RotationPlan:
    """Plan the next step of the rotation; `published` are the CAs that were published before now."""
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
