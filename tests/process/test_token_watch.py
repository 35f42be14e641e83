"""Who has to renew the Slurm token hears of it in time."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog

from slurmruntime.process import token_watch
from slurmruntime.process.metrics import Metrics

NOW = datetime(2026, 6, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Token:
    expires_at: datetime | None
    issued_at: datetime | None

    async def token(self, *, refused: str = "") -> str:
        raise AssertionError(f"nobody needs it here: {refused}")


def look(ends_at: datetime | None, issued_at: datetime | None = None) -> list[Any]:
    with structlog.testing.capture_logs() as logs:
        token_watch.check(Token(ends_at, issued_at), NOW, file="/etc/token")
    return [(log["log_level"], log["event"], log.get("in_hours")) for log in logs]


@pytest.mark.parametrize(
    ("ends_at", "said"),
    [
        (None, []),
        (NOW + 73 * HOUR, []),
        (NOW + 72 * HOUR, [("warning", "slurm_token.ends", 72)]),
        (NOW + HOUR / 2, [("warning", "slurm_token.ends", 0)]),
        (NOW, [("error", "slurm_token.ended", None)]),
    ],
)
def test_the_nearer_the_end_the_louder(ends_at: datetime | None, said: list[Any]) -> None:
    assert said == look(ends_at)


@pytest.mark.parametrize(
    ("left", "lifetime", "warns"),
    [
        (HOUR, 2 * HOUR, False),
        (HOUR / 2, 2 * HOUR, True),
        (73 * HOUR, 1000 * HOUR, False),
        (72 * HOUR, 1000 * HOUR, True),
    ],
)
def test_a_short_lived_token_is_not_always_nearly_over(
    left: timedelta, lifetime: timedelta, *, warns: bool
) -> None:
    """One of two hours that is renewed every hour always has half of them left."""
    assert warns == bool(look(NOW + left, NOW + left - lifetime))


@pytest.mark.parametrize(("ends_at", "shown"), [(NOW, "1.7802"), (None, "+Inf")])
def test_the_end_is_a_metric(ends_at: datetime | None, shown: str) -> None:
    metrics = Metrics("extender")
    metrics.slurm.watch_token(lambda: ends_at)

    assert f"slurm_bridge_slurm_token_expiry_timestamp_seconds {shown}" in (
        metrics.registry.exposition().decode()
    )
