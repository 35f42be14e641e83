"""Certificates of slurmrestd: whoever learns of CAs late is never cut off, and what a user has made is judged."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from slurmoperator.keys import certificates
from slurmoperator.keys.certificates import CertificateBundle, CertificateRequest
from tests.slurmoperator.keys.own import HOST, NOW, users

DAY = timedelta(days=1)
WANTED = CertificateRequest(
    authority="slurmrestd of slurm/site",
    name="site-restapi",
    hosts=frozenset({HOST}),
    lifetime=9 * DAY,
    authority_lifetime=36 * DAY,
)
NOTHING = CertificateBundle(authorities={}, trusted=b"", files={})


def looked(before: CertificateBundle, now: datetime) -> CertificateBundle:
    return certificates.keep_or_sign(
        WANTED, before.authorities, before.files, before.trusted, now=now
    )


def is_vouched_for(files: Mapping[str, bytes], trusted: bytes) -> bool:
    (own,) = x509.load_pem_x509_certificates(files["tls.crt"])
    for load_pem_x509_certificate in x509.load_pem_x509_certificates(trusted):
        try:
            own.verify_directly_issued_by(load_pem_x509_certificate)
        except Exception:  # noqa: BLE001, S112  # another CA's, whatever is wrong with it
            continue
        return True
    return False


def test_the_first_look_makes_all_and_the_next_one_changes_nothing() -> None:
    first = looked(NOTHING, NOW)
    assert NOTHING.files != first.files
    assert is_vouched_for(first.files, first.trusted)
    assert b"PRIVATE KEY" not in first.trusted
    second = looked(first, NOW + DAY)
    assert (first.files, first.authorities, first.trusted) == (
        second.files,
        second.authorities,
        second.trusted,
    )


def test_whoever_reads_the_cas_an_hour_late_is_never_cut_off() -> None:
    """Through three generations of CAs; the pods see a certificate an hour late, too."""
    step = timedelta(hours=1)
    before = now_is = looked(NOTHING, NOW)
    presented = set()
    for hour in range(1, 24 * 80):
        late = before
        before, now_is = now_is, looked(now_is, NOW + hour * step)
        for files in (late.files, now_is.files):
            for trusted in (before.trusted, now_is.trusted):
                assert is_vouched_for(files, trusted), hour
        (own,) = x509.load_pem_x509_certificates(late.files["tls.crt"])
        assert own.not_valid_after_utc > NOW + hour * step
        presented.add(own.serial_number)
    assert 10 <= len(presented) <= 16
    assert 2 == len(now_is.authorities) / 2


def test_damaged_contents_are_made_anew() -> None:
    first = looked(NOTHING, NOW)
    for files in ({}, {"tls.crt": b"no", "tls.key": b"PEM"}, {**first.files, "tls.key": b""}):
        broken = replace(first, files=files)
        again = looked(broken, NOW)
        assert files != again.files
        assert first.authorities == again.authorities
        assert is_vouched_for(again.files, first.trusted)
    lost = CertificateBundle(
        authorities={"a.crt": b"no", "a.key": b"PEM"},
        trusted=first.trusted,
        files=first.files,
    )
    again = looked(lost, NOW)
    assert is_vouched_for(again.files, again.trusted)
    assert not is_vouched_for(first.files, again.trusted)


def said(data: Mapping[str, bytes], host: str = HOST, now: datetime = NOW) -> str:
    return "; ".join(
        str(faults_of_user.text)
        for faults_of_user in certificates.user_certificate_faults("mine", data, host, now=now)
    )


def test_a_certificate_of_a_user_is_taken_as_it_is() -> None:
    assert "" == said(users())


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"ca_crt": b""}, "it has no ca.crt"),
        ({"tls_crt": b"", "tls_key": b""}, "it has no tls.crt, tls.key"),
        ({"tls_crt": b"no PEM"}, "expected PEM"),
        ({"ca_crt": b"no PEM"}, "expected PEM"),
        ({"tls_key": b"no PEM"}, "expected PEM"),
    ],
)
def test_what_is_wrong_with_a_users_secret_is_said(
    changes: dict[str, bytes], expected: str
) -> None:
    assert expected in said(users(NOW, **changes))


def test_another_key_another_name_and_an_old_certificate_are_said() -> None:
    key = rsa.generate_private_key(65_537, 2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    assert "tls.key is not the key of tls.crt" in said(users(tls_key=key))
    assert f"its certificate is for {HOST}: expected other.slurm.svc among them" in said(
        users(), "other.slurm.svc"
    )
    assert "its certificate expired at 2026-12-04T00:00:00Z" in said(users(), now=NOW + 9 * DAY)
