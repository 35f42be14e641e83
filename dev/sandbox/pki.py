"""A certificate authority for one sandbox.

Complete enough for Python 3.13 and newer, which verify strictly by RFC 5280 (VERIFY_X509_STRICT).
"""

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from slurmruntime.process.pki import usage

LIFETIME = timedelta(days=365)
_CLOCK_SKEW = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A certificate and its key, PEM."""

    certificate: bytes
    key: bytes


def authority(now: datetime) -> Pair:
    """Return a self-signed CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("slurm-bridge sandbox")
    certificate = (
        _builder(name, key, now)
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pair(certificate, key)


def issue(
    ca: Pair,
    *,
    name: str,
    groups: tuple[str, ...] = (),
    hosts: tuple[str, ...] = (),
    now: datetime,
) -> Pair:
    """Return a certificate for a client (user `name` in `groups`) and a loopback server.

    Args:
        ca: the CA that signs it.
        name: the user, and the certificate's common name.
        groups: the user's groups.
        hosts: further names and addresses of the server.
        now: it is valid from an hour before.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    ca_certificate = x509.load_pem_x509_certificate(ca.certificate)
    ca_key = serialization.load_pem_private_key(ca.key, password=None)
    if not isinstance(ca_key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"expected an elliptic curve key of the CA, got {type(ca_key).__name__}")
    certificate = (
        _builder(_name(name, groups), key, now)
        .issuer_name(ca_certificate.subject)
        .add_extension(
            x509.SubjectAlternativeName(
                [_host(host) for host in ("localhost", "127.0.0.1", *hosts)]
            ),
            critical=False,
        )
        .add_extension(
            x509.ExtendedKeyUsage(
                [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
            ),
            critical=False,
        )
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )
    return _pair(certificate, key)


def signing_key() -> Pair:
    """Return a key pair for service account tokens; `certificate` is the bare public key."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return Pair(certificate=public, key=_key_pem(key))


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _name(common: str, organizations: tuple[str, ...] = ()) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, common),
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations),
        ]
    )


def _builder(
    subject: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + LIFETIME)
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    return Pair(certificate=certificate.public_bytes(serialization.Encoding.PEM), key=_key_pem(key))


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
