"""Hostlists, as `scontrol show hostnames` reads them (Slurm 26.05)."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmruntime.values import hostlist


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("", [], id="no node"),
        pytest.param("login", ["login"], id="one name"),
        pytest.param("a,b", ["a", "b"], id="names with commas"),
        pytest.param("n[1-3,7]", ["n1", "n2", "n3", "n7"], id="ranges and single numbers"),
        pytest.param("n[08-10,3]", ["n08", "n09", "n10", "n3"], id="zeros pad one range only"),
        pytest.param("n[098-101]", ["n098", "n099", "n100", "n101"], id="width grows past padding"),
        pytest.param("n[9,010]", ["n9", "n010"], id="each number has its own width"),
        pytest.param("n[5,1-2]", ["n5", "n1", "n2"], id="order is as written"),
        pytest.param("n[1-2]-ib", ["n1-ib", "n2-ib"], id="text behind the bracket"),
        pytest.param("a[1-2]b[3-4]", ["a1b3", "a1b4", "a2b3", "a2b4"], id="several brackets"),
        pytest.param("n[1-2][3-4]", ["n13", "n14", "n23", "n24"], id="brackets side by side"),
        pytest.param(
            "n[1-2].example.com,m[1]",
            ["n1.example.com", "n2.example.com", "m1"],
            id="names with a domain",
        ),
    ],
)
def test_expand_names_every_node(text: str, names: list[str]) -> None:
    assert tuple(names) == hostlist.expand(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("n[1-3", "expected a name at 'n[1-3'", id="bracket never closed"),
        pytest.param("n1]", "expected a name at 'n1]'", id="bracket never opened"),
        pytest.param("n[[1]]", "expected a name", id="bracket in a bracket"),
        pytest.param("n[]", "found ''", id="empty bracket"),
        pytest.param("n[1,]", "found ''", id="number missing after a comma"),
        pytest.param("n[a-c]", "found 'a-c'", id="letters in a bracket"),
        pytest.param("n[1-2-3]", "found '1-2-3'", id="range of three"),
        pytest.param("n[3-1]", "3-1 counts downwards", id="range downwards"),
        pytest.param("a,,b", "expected a name at ''", id="empty name"),
        pytest.param("a b", "expected a name at 'a b'", id="space"),
        pytest.param("n[1-100001]", "more than 100000 names", id="too many in one range"),
        pytest.param("n[1-1000][1-1000]", "more than 100000 names", id="too many in two brackets"),
        pytest.param("n[1-99999],m[1-2]", "more than 100000 names", id="too many in two entries"),
        pytest.param("n[0-999999999999999999]", "more than 100000 names", id="absurdly many"),
    ],
)
def test_expand_refuses_what_is_no_hostlist(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match="hostlist") as raised:
        hostlist.expand(text)

    assert complaint in str(raised.value)


def test_expand_refuses_absurd_sizes_without_trying_them() -> None:
    began = time.perf_counter()
    with pytest.raises(ValueError, match="more than"):
        hostlist.expand("n" + "[0-9]" * 200)

    assert time.perf_counter() - began < 0.5


@pytest.mark.parametrize(
    ("names", "text"),
    [
        pytest.param([], "", id="no node"),
        pytest.param(["n1", "n2", "n3"], "n[1-3]", id="a run"),
        pytest.param(["n1", "n2", "n5", "m"], "n[1-2,5],m", id="runs, gaps and others"),
        pytest.param(["n08", "n09", "n10", "n11"], "n[08-11]", id="padded run"),
        pytest.param(["n9", "n010"], "n[9,010]", id="widths that do not go together"),
        pytest.param(["n3", "n2", "n1"], "n[3,2,1]", id="downwards"),
        pytest.param(["n1", "n1"], "n[1,1]", id="twice the same"),
        pytest.param(["a-1.x", "a-2.x"], "a-1.x,a-2.x", id="only numbers at the end are ranges"),
    ],
)
def test_compress_writes_runs_as_ranges(names: list[str], text: str) -> None:
    assert text == hostlist.compress(names)


@pytest.mark.parametrize("name", ["", "a,b", "n[1]", "a b", "a\n"])
def test_compress_refuses_names_that_would_read_otherwise(name: str) -> None:
    with pytest.raises(ValueError, match="node name"):
        hostlist.compress([name])


NODE_NAMES = st.one_of(
    st.from_regex(r"\A[a-z]{1,2}-?[0-9]{1,3}\Z"),
    st.from_regex(r"\A[a-zA-Z0-9._-]{1,12}\Z"),
)


@given(st.lists(NODE_NAMES, max_size=30))
def test_expand_gives_back_what_was_compressed(names: list[str]) -> None:
    assert tuple(names) == hostlist.expand(hostlist.compress(names))


@given(st.text(alphabet="n1290[]-,. ", max_size=20))
def test_expand_answers_any_text_with_names_or_a_value_error(text: str) -> None:
    try:
        names = hostlist.expand(text)
    except ValueError:
        return
    assert names == hostlist.expand(hostlist.compress(names))
