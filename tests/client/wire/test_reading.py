"""Decoding slurmrestd's JSON: optional numbers, times, odd objects."""

import contextlib
import math
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmclient.calls import answers
from slurmclient.errors import Malformed, NotFound, Rejected, SlurmError
from slurmclient.models import Job
from slurmclient.wire import reading, writing
from slurmclient.wire.reading import DecodeResult, Model, Odd
from slurmclient.wire.values import Number, Time


class Row(Model, frozen=True):
    job_id: int
    name: str = ""
    priority: Number = None
    start_time: Time = None
    flags: frozenset[str] = frozenset()


def rows(body: bytes) -> reading.Listing[Row]:
    return answers.listing("slurm_get_jobs", body, "jobs", Row)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param('{"set": true, "infinite": false, "number": 7}', 7, id="a number"),
        pytest.param('{"set": false, "infinite": false, "number": 0}', None, id="none"),
        pytest.param('{"set": true, "infinite": true, "number": 0}', math.inf, id="no limit"),
        pytest.param("7", 7, id="a plain number"),
    ],
)
def test_an_optional_number_is_none_a_number_or_infinite(written: str, read: float | None) -> None:
    assert read == rows(b'{"jobs": [{"job_id": 1, "priority": %s}]}' % written.encode())[0].priority


def test_a_time_is_in_utc_and_zero_is_none() -> None:
    body = b'{"jobs": [{"job_id": 1, "start_time": {"set": true, "number": %d}}]}'
    assert rows(body % 1_700_000_000)[0].start_time == datetime(
        2023, 11, 14, 22, 13, 20, tzinfo=UTC
    )
    assert rows(body % 0)[0].start_time is None


def test_an_odd_field_costs_only_itself() -> None:
    found = rows(b'{"jobs": [{"job_id": 1, "name": 5, "flags": null}, {"job_id": 2, "name": "b"}]}')
    assert [(1, ""), (2, "b")] == [(one.job_id, one.name) for one in found]
    assert (Odd(0, "name", "Expected `str`, got `int`"),) == found.odd


def test_an_object_without_a_required_field_is_set_aside_and_reported() -> None:
    found = rows(b'{"jobs": [{"name": "a"}, 7, {"job_id": 2}]}')
    assert [2] == [one.job_id for one in found]
    assert [(0, ""), (1, "")] == [(one.index, one.field) for one in found.odd]


def test_a_byte_that_is_not_utf_8_costs_only_itself() -> None:
    found = rows(b'{"jobs": [{"job_id": 1, "name": "a\xffb"}, {"job_id": 2, "name": "ok"}]}')
    assert ["a\ufffdb", "ok"] == [one.name for one in found]


def test_a_control_character_costs_only_itself() -> None:
    found = rows(b'{"jobs": [{"job_id": 1, "name": "a\x01b"}, {"job_id": 2, "name": "ok"}]}')
    assert ["a b", "ok"] == [one.name for one in found]


def test_what_was_wrong_with_an_object_is_told() -> None:
    whole = reading.lenient(b'{"job_id": 1, "name": "a"}', Row)
    repaired = reading.lenient(b'{"job_id": 1, "name": "\xff"}', Row)
    odd = reading.lenient(b'{"job_id": 1, "name": 5, "flags": null}', Row, is_null_odd=True)
    assert isinstance(whole, DecodeResult)
    assert isinstance(repaired, DecodeResult)
    assert isinstance(odd, DecodeResult)
    assert ("", frozenset()) == (whole.why, whole.left_out)
    assert ("\ufffd", frozenset()) == (repaired.value.name, repaired.left_out)
    assert "utf-8" in repaired.why.lower()
    assert {"name", "flags"} == odd.left_out
    assert odd.why.startswith("name: Expected `str`, got `int`; flags: ")


def test_a_time_out_of_range_costs_only_itself() -> None:
    found = rows(
        b'{"jobs": [{"job_id": 1, "name": "a", "start_time": {"set": true, "number": 99999999999999}}]}'
    )
    assert ("a", None) == (found[0].name, found[0].start_time)
    assert ["start_time"] == [one.field for one in found.odd]


def test_errors_of_an_answer_that_is_200_are_errors() -> None:
    body = b'{"errors": [{"description": "no node x", "error_number": 2018, "error": "Invalid node name"}]}'
    with pytest.raises(NotFound) as raised:
        rows(body)
    assert (2018, "Invalid node name: no node x") == (raised.value.error_number, raised.value.words)


def test_a_list_that_is_null_is_empty_and_a_page_of_a_proxy_is_malformed() -> None:
    assert [] == rows(b'{"jobs": null}')
    with pytest.raises(Malformed, match="a response that starts '<html>"):
        rows(b"<html>")


def test_a_body_is_written_as_slurm_reads_it() -> None:
    sent = writing.encode(
        {
            "time_limit": timedelta(minutes=5, seconds=1),
            "begin_time": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
            "delay_boot": timedelta(minutes=1),
            "priority": math.inf,
            "flags": frozenset({"B", "A"}),
            "nested": [{"gone": None, "kept": 1}],
            "comment": None,
        }
    )
    assert {
        "time_limit": {"set": True, "number": 6},
        "begin_time": {"set": True, "number": 1_700_000_000},
        "delay_boot": {"set": True, "number": 60},
        "priority": {"set": True, "infinite": True},
        "flags": ["A", "B"],
        "nested": [{"kept": 1}],
    } == msgspec.json.decode(sent)


def test_a_model_without_fields_has_defaults() -> None:
    job = reading.decode(b'{"job_resources": null}', Job)
    assert (0, None, None) == (job.job_id, job.job_resources, job.exit_code.return_code)


def test_a_refusal_keeps_the_words_of_slurm() -> None:
    body = b'{"errors": [{"description": "d", "error_number": 2029, "error": "e", "source": "s"}], "warnings": [{"description": "w"}]}'
    with pytest.raises(Rejected) as raised:
        rows(body)
    assert ("e: d", "w", "s") == (
        raised.value.words,
        raised.value.warnings[0].description,
        raised.value.problems[0].source,
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["job_id", "name", "priority", "start_time", "flags", "set", "number", "infinite"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)


@given(st.lists(JSON, max_size=4) | JSON)
def test_any_json_is_read_or_refused(jobs: object) -> None:
    try:
        found = rows(msgspec.json.encode({"jobs": jobs}))
    except SlurmError:
        return
    expected = jobs if isinstance(jobs, list) else []
    assert len(expected) == len(found) + len([one for one in found.odd if one.field == ""])


@given(st.binary(max_size=60))
def test_any_bytes_raise_only_our_errors(body: bytes) -> None:
    with contextlib.suppress(SlurmError):
        rows(body)
