"""Splitting a list into its objects while it arrives in pieces."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmclient.errors import Malformed
from slurmclient.wire.splitting import Splitter

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a{}[]"\\,:é '),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(
    st.lists(st.dictionaries(st.text(max_size=4), VALUES, max_size=4), max_size=5),
    st.integers(1, 40),
    st.sampled_from([None, 2]),
)
def test_the_objects_come_out_as_they_went_in_whatever_the_pieces(
    objects: list[dict[str, Any]], size: int, indent: int | None
) -> None:
    answer = json.dumps({"jobs": objects, "errors": [{"a": 1}]}, indent=indent).encode()
    splitter = Splitter("slurm_get_jobs", "jobs")
    found = [
        json.loads(one)
        for at in range(0, len(answer), size)
        for one in splitter.feed(answer[at : at + size])
    ]
    assert objects == found
    assert {"jobs": [], "errors": [{"a": 1}]} == json.loads(splitter.before + splitter.rest)


def test_what_follows_the_list_is_kept_for_its_errors() -> None:
    splitter = Splitter("slurm_get_jobs", "jobs")
    assert [b'{"a":1}'] == list(splitter.feed(b'{"x": 1, "jobs": [{"a":1}], "errors": []}'))
    assert (True, b'], "errors": []}') == (splitter.is_done, splitter.rest)


@pytest.mark.parametrize(
    ("start", "what"),
    [
        pytest.param(b'{"jobs": [{"a": "', "an object", id="an object"),
        pytest.param(b'{"meta": "', "text around the list", id="what stands before the list"),
        pytest.param(b'{"jobs": [], "b": "', "text around the list", id="what stands after it"),
    ],
)
def test_what_has_no_end_is_not_kept_for_ever(start: bytes, what: str) -> None:
    splitter = Splitter("slurm_get_jobs", "jobs", longest=1000)
    with pytest.raises(Malformed, match=f"at most 1000 bytes at once, got more of {what}"):
        list(splitter.feed(start + b"x" * 2000))
