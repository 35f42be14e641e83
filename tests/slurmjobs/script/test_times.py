"""Points in time, as sbatch understands them at a given moment; the sandbox's clock cannot be set."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from slurmjobs.script.values.form import UnreadableValue
from slurmjobs.script.values.times import LIMIT_MIN, POINT_IN_TIME, UNLIMITED

NOW = datetime(2031, 5, 20, 14, 30, 10, tzinfo=timezone(timedelta(hours=2)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", "2031-05-20T14:30:10"),
        ("now+1hour", "2031-05-20T15:30:10"),
        ("now + 90", "2031-05-20T14:31:40"),
        ("now-2days", "2031-05-18T14:30:10"),
        ("16:00", "2031-05-20T16:00:00"),
        ("14:30", "2031-05-21T14:30:00"),
        ("3:05pm", "2031-05-20T15:05:00"),
        ("12:00 AM", "2031-05-21T00:00:00"),
        ("teatime", "2031-05-20T16:00:00"),
        ("noon", "2031-05-21T12:00:00"),
        ("tomorrow", "2031-05-21T00:00:00"),
        ("today 23:59:59", "2031-05-20T23:59:59"),
        ("12/24", "2031-12-24T00:00:00"),
        ("05/20-14:31", "2031-05-20T14:31:00"),
        ("05/20", "2032-05-20T00:00:00"),
        ("0102", "2032-01-02T00:00:00"),
        ("010234", "2034-01-02T00:00:00"),
        ("12.24.33", "2033-12-24T00:00:00"),
        ("2033-02-31", "2033-03-03T00:00:00"),
        ("2033-1-2T3:04", "2033-01-02T03:04:00"),
    ],
)
def test_a_point_in_time_is_resolved_at_the_moment(text: str, expected: str) -> None:
    assert expected == POINT_IN_TIME.read(text).at(NOW).replace(tzinfo=None).isoformat()


def test_seconds_since_the_epoch_need_no_zone() -> None:
    assert datetime(2031, 2, 28, 9, 6, 40, tzinfo=UTC) == POINT_IN_TIME.read("uts1930036000").at(
        NOW
    )


@pytest.mark.parametrize(
    "text",
    ["", "soon", "25:00", "12:60", "13:00pm", "2033-13-01", "0230x", "now+", "uts12", "13/01"],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UnreadableValue):
        POINT_IN_TIME.read(text)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("5", 5),
        ("0:01", 1),
        ("1:00:00", 60),
        ("1-", 1440),
        ("1-0:30", 1470),
        ("0", UNLIMITED),
        ("infinite", UNLIMITED),
    ],
)
def test_a_limit_is_in_minutes_rounded_up(text: str, minutes: int) -> None:
    assert minutes == LIMIT_MIN.read(text)
