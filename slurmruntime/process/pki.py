"""Issue and read certificates of our own CA; `slurmruntime.values.certificates` decides when.

All keys are elliptic curve P-256. A server's certificate is valid for servers only and a client's
for clients only, so that neither can be used as the other (RFC 5280, 4.2.1.12).
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from slurmruntime.values.certificates import CLOCK_SKEW, Authority, Certificate, Validity


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A certificate and its private key, PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


def make_authority(name: str, *, now: datetime, lifetime: timedelta) -> Pair:
    """Make a self-signed CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name)
    certificate = (
        _builder(subject, key.public_key(), Validity(made_at=now, ends_at=now + lifetime))
        .issuer_name(subject)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def issue(
    authority: Pair,
    *,
    name: str,
    hosts: frozenset[str],
    is_client: bool,
    now: datetime,
    lifetime: timedelta,
) -> Pair:
    """Sign a certificate for a new key, for these DNS names and IP addresses; it never outlives its CA."""
    ca = x509.load_pem_x509_certificate(authority.certificate)
    ca_key = _private_key(authority.key)
    key = ec.generate_private_key(ec.SECP256R1())
    term = Validity(made_at=now, ends_at=min(now + lifetime, ca.not_valid_after_utc))
    purpose = ExtendedKeyUsageOID.CLIENT_AUTH if is_client else ExtendedKeyUsageOID.SERVER_AUTH
    builder = (
        _builder(_name(name), key.public_key(), term)
        .issuer_name(ca.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
    )
    if hosts:
        names = x509.SubjectAlternativeName([_general_name(host) for host in sorted(hosts)])
        builder = builder.add_extension(names, critical=False)
    return _pair(builder.sign(ca_key, hashes.SHA256()), key)


def read_authority(pair: Pair) -> Authority:
    """Return the domain's view of a CA; raise ValueError if it is unreadable or its key does not match."""
    certificate = _fitting(pair)
    return Authority(
        id=certificate.fingerprint(hashes.SHA256()).hex()[:16], term=_term(certificate)
    )


def read_certificate(pair: Pair, authorities: tuple[Pair, ...]) -> Certificate | None:
    """Return the domain's view of a certificate; None if it and its key do not match."""
    try:
        certificate = _fitting(pair)
    except ValueError:
        return None
    signers = (read_authority(a).id for a in authorities if _has_signed(a, certificate))
    return Certificate(issuer=next(signers, ""), term=_term(certificate), hosts=_hosts(certificate))


def to_secret(authorities: Mapping[str, Pair]) -> dict[str, bytes]:
    """Return the contents of a Secret with these CAs."""
    return {
        f"{id_}.{end}": content
        for id_, pair in authorities.items()
        for end, content in (("crt", pair.certificate), ("key", pair.key))
    }


def from_secret(data: Mapping[str, bytes]) -> tuple[dict[str, Pair], dict[str, str]]:
    """Return the CAs in a Secret by id, and the faults of damaged ones by their keys' names there."""
    pairs: dict[str, Pair] = {}
    damaged: dict[str, str] = {}
    for name in sorted(data):
        stem, _, end = name.rpartition(".")
        key = data.get(f"{stem}.key")
        if end != "crt" or key is None:
            continue
        pair = Pair(certificate=data[name], key=key)
        try:
            pairs[read_authority(pair).id] = pair
        except ValueError as error:
            damaged[stem] = str(error)
    return pairs, damaged


def fingerprints(bundle: bytes) -> frozenset[str]:
    """Return the ids of the CAs in a PEM bundle; none if it cannot be read."""
    try:
        certificates = x509.load_pem_x509_certificates(bundle)
    except ValueError:
        return frozenset()
    return frozenset(c.fingerprint(hashes.SHA256()).hex()[:16] for c in certificates)


def _fitting(pair: Pair) -> x509.Certificate:
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    if _private_key(pair.key).public_key() != certificate.public_key():
        raise ValueError("certificate and key do not match")
    return certificate


def _private_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (TypeError, UnsupportedAlgorithm) as error:
        raise ValueError(f"the key cannot be read: {error}") from error
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return key
    raise ValueError(f"expected an elliptic curve key, found a {type(key).__name__}")


def _has_signed(authority: Pair, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate))
    except (InvalidSignature, TypeError, ValueError):
        return False
    return True


def _term(certificate: x509.Certificate) -> Validity:
    made_at = certificate.not_valid_before_utc + CLOCK_SKEW
    return Validity(made_at=made_at, ends_at=certificate.not_valid_after_utc)


def _hosts(certificate: x509.Certificate) -> frozenset[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(
        (
            *names.get_values_for_type(x509.DNSName),
            *map(str, names.get_values_for_type(x509.IPAddress)),
        )
    )


def _builder(
    subject: x509.Name, key: ec.EllipticCurvePublicKey, term: Validity
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(term.made_at - CLOCK_SKEW)
        .not_valid_after(term.ends_at)
    )


def usage(*, signs_certificates: bool) -> x509.KeyUsage:
    """Return the key usage of a CA, which Python 3.13 and newer require, or of another certificate."""
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common[:64])])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    return Pair(
        certificate=certificate.public_bytes(serialization.Encoding.PEM),
        key=key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
