"""One object that is nested a thousand levels deep costs only itself."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.kube.claims import resource_claims
from slurmruntime.kube import errors, nesting, resource

DEEP = b"[" * 3000 + b"]" * 3000
META = b'"metadata":{"name":"n","namespace":"ns","uid":"u","resourceVersion":"7","creationTimestamp":"2026-01-01T00:00:00Z"}'
DEEP_CLAIM = (
    b"{" + META + b',"spec":{"devices":{"config":[{"opaque":{"driver":"d","parameters":{"a":'
    + DEEP
    + b'}}}]}},"status":{"reservedFor":[{"uid":"p1"}]}}'
)  # fmt: skip


def test_a_list_and_a_watch_show_the_others_and_what_is_read_of_it() -> None:
    page = resource.page(
        "/claims", b'{"metadata":{"resourceVersion":"9"},"items":[{"a":1},' + DEEP_CLAIM + b"]}"
    )
    _, watched = resource.event("/claims", b'{"type":"ADDED","object":' + DEEP_CLAIM + b"}")

    assert [{"a": 1}] == [json.loads(bytes(page.items[0]))]
    for found in (page.items[1], watched):
        assert resource_claims.taken(found).reserved_for == ("p1",)


def test_its_parameters_are_not_handed_on_cut_off() -> None:
    with pytest.raises(errors.Malformed):
        resource_claims.claim(DEEP_CLAIM)


JSON = st.recursive(
    st.none() | st.integers(-9, 9) | st.text(alphabet='a[]{}"\\\n', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
)


@given(JSON)
def test_what_is_not_deep_stays_as_it_is(found: object) -> None:
    text = json.dumps(found).encode()

    assert text == nesting.cut(text)
    assert json.loads(nesting.cut(b"[" * nesting.MOST + text + b"]" * nesting.MOST)) == _nested(
        None if isinstance(found, list | dict) else found
    )


def _nested(found: object) -> object:
    for _ in range(nesting.MOST):
        found = [found]
    return found
