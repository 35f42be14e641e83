"""A certificate of a user's own for slurmrestd, as cert-manager writes it."""

from datetime import UTC, datetime, timedelta

from slurmruntime.process import pki

NOW = datetime(2026, 11, 25, tzinfo=UTC)
DAY = timedelta(days=1)
HOST = "site-restapi.slurm.svc"


def users(now: datetime = NOW, /, **changes: bytes) -> dict[str, bytes]:
    """What cert-manager writes."""
    ca = pki.make_authority("site", now=now, lifetime=9 * DAY)
    pair = pki.issue(
        ca, name="mine", hosts=frozenset({HOST}), is_client=False, now=now, lifetime=9 * DAY
    )
    found = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": ca.certificate}
    return found | {key.replace("_", "."): each for key, each in changes.items()}
