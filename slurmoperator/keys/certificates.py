"""The certificates that slurmrestd presents: of CAs of ours, replaced before they end, or a user's own, as they are.

`slurmruntime.values.certificates` decides what is due when; nothing is read or written here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from slurmruntime.crd.restapis import TRUSTED
from slurmruntime.process import pki
from slurmruntime.process.pki import Pair
from slurmruntime.values import certificates
from slurmruntime.values.faults import Fault

_CERTIFICATE, _KEY = "tls.crt", "tls.key"
_MOST_SAID = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedCertificate:
    """What is to be presented."""

    authority: str
    """The name of CAs that are made, for people."""
    name: str
    """Of whoever presents it, for people."""
    hosts: frozenset[str]
    lifetime: timedelta
    authority_lifetime: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedCertificate:
    """A certificate of ours, and all that belongs to it."""

    authorities: Mapping[str, bytes] = field(repr=False)
    """Contents of the Secret that keeps the CAs."""
    trusted: bytes
    """The CAs without their keys, PEM."""
    files: Mapping[str, bytes] = field(repr=False)
    """Contents of the Secret that is mounted."""
    why: str
    """Why it is another one than before; "" if it is not."""


def kept_or_signed(
    wanted: WantedCertificate,
    held: Mapping[str, bytes],
    shown: Mapping[str, bytes],
    published: bytes,
    *,
    now: datetime,
) -> SignedCertificate:
    """Return the certificate that is there as long as it will do, or another one.

    A CA that is to take another one's place is published long before it signs.

    Args:
        wanted: what it is for.
        held: contents of the Secret that keeps the CAs; damaged ones count as missing.
        shown: contents of the Secret that is mounted.
        published: the CAs that clients have been told to trust, PEM.
        now: the wall clock.
    """
    pairs, _damaged = pki.restored(held)
    pair = Pair(certificate=shown.get(_CERTIFICATE, b""), key=shown.get(_KEY, b""))
    public = pki.fingerprints(published)

    def plan() -> certificates.RotationPlan:
        there = pki.read_certificate(pair, tuple(pairs.values()))
        known = [pki.read_authority(each) for each in pairs.values()]
        return certificates.decide(
            now, known, {wanted.name: there}, {wanted.name: wanted.hosts}, public
        )

    due = plan()
    if due.makes_authority:
        made = pki.make_authority(wanted.authority, now=now, lifetime=wanted.authority_lifetime)
        pairs[pki.read_authority(made).id] = made
        due = plan()
    pairs = {id_: pairs[id_] for id_ in due.trusted}
    why = due.renewals.get(wanted.name, "")
    if why:
        pair = pki.issue(
            pairs[due.signer],
            name=wanted.name,
            hosts=wanted.hosts,
            is_client=False,
            now=now,
            lifetime=wanted.lifetime,
        )
    return SignedCertificate(
        authorities=pki.stored(pairs),
        trusted=b"".join(each.certificate for each in pairs.values()),
        files={_CERTIFICATE: pair.certificate, _KEY: pair.key},
        why=why,
    )


def faults_of_users(
    secret: str, data: Mapping[str, bytes], host: str, *, now: datetime
) -> Iterator[Fault]:
    """Find what keeps clients from knowing a server by a certificate that a user has made.

    Args:
        secret: its name.
        data: its contents.
        host: by which clients call the server.
        now: the wall clock.
    """
    missing = [each for each in (_CERTIFICATE, _KEY, TRUSTED) if not data.get(each)]
    if missing:
        text = f"it has no {', '.join(missing)}: expected a certificate chain, its key, and the CA that clients are to trust"
        yield Fault(f"Secret {secret}", text)
        return
    try:
        own = x509.load_pem_x509_certificates(data[_CERTIFICATE])[0]
        key = serialization.load_pem_private_key(data[_KEY], password=None)
        x509.load_pem_x509_certificates(data[TRUSTED])
    except (TypeError, ValueError, UnsupportedAlgorithm) as error:
        yield Fault(f"Secret {secret}", f"expected PEM, and a key without a password: {error}")
        return
    if key.public_key() != own.public_key():
        yield Fault(f"Secret {secret}", f"{_KEY} is not the key of {_CERTIFICATE}")
    if own.not_valid_after_utc <= now:
        yield Fault(
            f"Secret {secret}",
            f"its certificate ended at {own.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}",
        )
    names = _names(own)
    if not names & {host, f"*.{host.partition('.')[2]}"}:
        listed = ", ".join(sorted(names)[:_MOST_SAID]) or "nobody"
        yield Fault(
            f"Secret {secret}", f"its certificate is for {listed}: expected {host} among them"
        )


def _names(certificate: x509.Certificate) -> frozenset[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return frozenset()
    return frozenset(found.get_values_for_type(x509.DNSName))
