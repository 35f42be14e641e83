"""Certificates of our own CA: each part proves who it is to those, and only those, that trust it."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from slurmruntime.process import pki
from slurmruntime.process.pki import Pair
from slurmruntime.values.certificates import Certificate, Validity

NOW = datetime.now(UTC).replace(microsecond=0)  # noqa: TID251  # handshakes know no other clock
DAY = timedelta(days=1)
EXTENDER, WEBHOOK = "extender.test.svc", "webhook.test.svc"
HOSTS = {
    "webhook": frozenset({WEBHOOK, "127.0.0.1"}),
    "extender": frozenset({EXTENDER}),
    "scheduler": frozenset[str](),
}


@pytest.fixture(scope="module")
def authority() -> Pair:
    return pki.make_authority("test CA", now=NOW, lifetime=30 * DAY)


def issue(authority: Pair, part: str) -> Pair:
    hosts = HOSTS[part]
    return pki.issue(
        authority, name=part, hosts=hosts, is_client=not hosts, now=NOW, lifetime=9 * DAY
    )


def context(side: ssl.Purpose, trusted: Pair, own: Pair | None, folder: Path) -> ssl.SSLContext:
    made = ssl.create_default_context(side, cadata=trusted.certificate.decode())
    made.verify_mode = ssl.CERT_REQUIRED
    made.verify_flags |= ssl.VERIFY_X509_STRICT  # the default from Python 3.13 on
    if own is not None:
        file = folder / "pair.pem"
        file.write_bytes(own.key + own.certificate)
        made.load_cert_chain(file)
    return made


def shake_hands(calling: ssl.SSLContext, called: ssl.SSLContext, host: str) -> None:
    """A TLS handshake in memory.

    Raises:
        ssl.SSLError: one side does not trust the other.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        calling.wrap_bio(to_client, to_server, server_hostname=host),
        called.wrap_bio(to_server, to_client, server_side=True),
    ]
    for end in ends * 3:
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue


@pytest.mark.parametrize("host", [WEBHOOK, "127.0.0.1"])
def test_who_trusts_the_ca_trusts_the_webhook(authority: Pair, tmp_path: Path, host: str) -> None:
    called = context(ssl.Purpose.CLIENT_AUTH, authority, issue(authority, "webhook"), tmp_path)
    called.verify_mode = ssl.CERT_NONE
    calling = context(ssl.Purpose.SERVER_AUTH, authority, None, tmp_path)

    shake_hands(calling, called, host)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(calling, called, EXTENDER)


@pytest.mark.parametrize("caller", ["scheduler", "webhook", "extender", None, "stranger"])
def test_the_extender_lets_in_the_scheduler_and_nobody_else(
    authority: Pair, tmp_path: Path, caller: str | None
) -> None:
    called = context(ssl.Purpose.CLIENT_AUTH, authority, issue(authority, "extender"), tmp_path)
    own: Pair | None
    if caller == "stranger":
        other = pki.make_authority("test CA", now=NOW, lifetime=DAY)
        own = issue(other, "scheduler")
    else:
        own = issue(authority, caller) if caller else None
    calling = context(ssl.Purpose.SERVER_AUTH, authority, own, tmp_path)

    if caller == "scheduler":
        shake_hands(calling, called, EXTENDER)
    else:
        with pytest.raises(ssl.SSLError):
            shake_hands(calling, called, EXTENDER)


def test_what_is_read_is_what_was_signed(authority: Pair) -> None:
    ca = pki.read_authority(authority)
    webhook = issue(authority, "webhook")

    assert Validity(made_at=NOW, ends_at=NOW + 30 * DAY) == ca.term
    assert Certificate(
        issuer=ca.id, term=Validity(made_at=NOW, ends_at=NOW + 9 * DAY), hosts=HOSTS["webhook"]
    ) == pki.read_certificate(webhook, (authority,))
    assert frozenset({ca.id}) == pki.fingerprints(authority.certificate)


def test_a_certificate_never_outlives_its_ca(authority: Pair) -> None:
    late = pki.issue(
        authority,
        name="late",
        hosts=frozenset({"late"}),
        is_client=False,
        now=NOW + 29 * DAY,
        lifetime=9 * DAY,
    )
    read = pki.read_certificate(late, (authority,))

    assert read is not None
    assert NOW + 30 * DAY == read.term.ends_at


def test_a_namesake_has_not_signed_it(authority: Pair) -> None:
    """A CA of the same name has another key."""
    namesake = pki.make_authority("test CA", now=NOW, lifetime=DAY)
    read = pki.read_certificate(issue(authority, "webhook"), (namesake,))

    assert read is not None
    assert "" == read.issuer


@pytest.mark.parametrize("damage", ["no certificate", "no key", "half a key", "another's key"])
def test_a_damaged_pair_is_none(authority: Pair, damage: str) -> None:
    pair, other = issue(authority, "webhook"), issue(authority, "webhook")
    damaged = {
        "no certificate": Pair(certificate=b"", key=pair.key),
        "no key": Pair(certificate=pair.certificate, key=b""),
        "half a key": Pair(certificate=pair.certificate, key=pair.key[:80]),
        "another's key": Pair(certificate=pair.certificate, key=other.key),
    }[damage]

    assert pki.read_certificate(damaged, (authority,)) is None
    with pytest.raises(ValueError):  # noqa: PT011  # whatever the library calls it
        pki.read_authority(damaged)


def test_keys_are_not_shown(authority: Pair) -> None:
    assert "PRIVATE" not in repr(authority)
