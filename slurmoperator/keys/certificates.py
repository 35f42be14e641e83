"""The certificates that slurmrestd presents: signed by our CAs and renewed before they expire, or a user's own, unchanged.

`slurmruntime.values.certificates` decides what is due when. Nothing is read or written here.
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
_MOST_NAMES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateRequest:
    """What a certificate is for."""

    authority: str
    name: str
    hosts: frozenset[str]
    lifetime: timedelta
    authority_lifetime: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateBundle:
    """A certificate of ours with its key and CAs."""

    authorities: Mapping[str, bytes] = field(repr=False)
    """Contents of the Secret with the CAs."""
    trusted: bytes
    """The CAs without their keys, PEM."""
    files: Mapping[str, bytes] = field(repr=False)
    """Contents of the Secret that is mounted."""


def keep_or_sign(
    request: CertificateRequest,
    stored_authorities: Mapping[str, bytes],
    mounted: Mapping[str, bytes],
    published: bytes,
    *,
    now: datetime,
) -> CertificateBundle:
    """Return the current certificate while it is good enough, otherwise a new one.

    A CA that will replace another is published long before it signs.

    Args:
        stored_authorities: contents of the Secret with the CAs; damaged ones count as missing.
        mounted: contents of the Secret that is mounted.
        published: the CAs that clients trust, PEM.
    """
    pairs, _damaged = pki.from_secret(stored_authorities)
    pair = Pair(certificate=mounted.get(_CERTIFICATE, b""), key=mounted.get(_KEY, b""))
    public = pki.fingerprints(published)

    def make_plan() -> certificates.RotationPlan:
        current = pki.read_certificate(pair, tuple(pairs.values()))
        known = [pki.read_authority(authority) for authority in pairs.values()]
        return certificates.decide(
            now, known, {request.name: current}, {request.name: request.hosts}, public
        )

    plan = make_plan()
    if plan.makes_authority:
        authority = pki.make_authority(
            request.authority, now=now, lifetime=request.authority_lifetime
        )
        pairs[pki.read_authority(authority).id] = authority
        plan = make_plan()
    pairs = {id_: pairs[id_] for id_ in plan.trusted}
    if request.name in plan.renewals:
        pair = pki.issue(
            pairs[plan.signer],
            name=request.name,
            hosts=request.hosts,
            is_client=False,
            now=now,
            lifetime=request.lifetime,
        )
    return CertificateBundle(
        authorities=pki.to_secret(pairs),
        trusted=b"".join(authority.certificate for authority in pairs.values()),
        files={_CERTIFICATE: pair.certificate, _KEY: pair.key},
    )


def user_certificate_faults(
    secret: str, data: Mapping[str, bytes], host: str, *, now: datetime
) -> Iterator[Fault]:
    """Find reasons why clients that use this host name would not accept a server with the certificate in a user's Secret."""
    missing = [file for file in (_CERTIFICATE, _KEY, TRUSTED) if not data.get(file)]
    if missing:
        text = f"it has no {', '.join(missing)}: expected a certificate chain, its key, and the CA for clients to trust"
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
        text = f"its certificate expired at {own.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}"
        yield Fault(f"Secret {secret}", text)
    names = _names(own)
    if not names & {host, f"*.{host.partition('.')[2]}"}:
        listed = ", ".join(sorted(names)[:_MOST_NAMES]) or "no host"
        text = f"its certificate is for {listed}: expected {host} among them"
        yield Fault(f"Secret {secret}", text)


def _names(certificate: x509.Certificate) -> frozenset[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return frozenset()
    return frozenset(names.get_values_for_type(x509.DNSName))
