"""The identity that a placeholder carries in `admin_comment`."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.domain.model import identities
from bridge.domain.model.identities import Identity, UnreadableIdentityError
from slurmruntime.values.ids import ClusterId, PodUid, WorkloadKey

IDENTITY = Identity(
    cluster=ClusterId("c-1"),
    kind="Pod",
    namespace="team-a",
    name="train",
    key=WorkloadKey("u-1"),
    pods=(PodUid("u-1"),),
)

IDENTITIES = st.builds(
    Identity,
    cluster=st.text().map(ClusterId),
    kind=st.text(),
    namespace=st.text(),
    name=st.text(),
    key=st.text(),
    pods=st.lists(st.text().map(PodUid)).map(tuple),
    cause=st.text(),
    ended=st.text(),
)


def edited(**changes: object) -> str:
    return json.dumps(json.loads(identities.encode(IDENTITY)) | changes)


def without(key: str) -> str:
    document = json.loads(identities.encode(IDENTITY))
    del document[key]
    return json.dumps(document)


@given(IDENTITIES)
def test_decode_gives_back_what_was_encoded(identity: Identity) -> None:
    assert identity == identities.decode(identities.encode(identity))


def test_the_form_is_fixed_because_other_versions_read_it() -> None:
    expected = '{"slurm-bridge":1,"cluster":"c-1","kind":"Pod","namespace":"team-a","name":"train","uid":"u-1","pods":["u-1"]}'

    assert expected == identities.encode(IDENTITY)


@given(IDENTITIES)
def test_the_form_is_plain_ascii_on_one_line(identity: Identity) -> None:
    text = identities.encode(identity)

    assert text.isascii()
    assert text.isprintable()


def test_a_thousand_pods_fit() -> None:
    pods = tuple(PodUid(f"6f1c9c5e-0f7e-4b62-9a3e-{index:012}") for index in range(1000))
    identity = Identity(
        cluster=ClusterId("c"), kind="Job", namespace="n", name="n", key=WorkloadKey("u"), pods=pods
    )

    assert len(identities.encode(identity)) < 40_000


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("ask ops before cancelling", id="a person's note"),
        pytest.param('{"pods": ["team-a/train"]}', id="SchedMD's bridge"),
        pytest.param('["slurm-bridge", 1]', id="JSON of another shape"),
        pytest.param('{"about": "slurm-bridge"}', id="the word elsewhere"),
        pytest.param('{"slurm-bridge": 1, "clus', id="cut off"),
        pytest.param('"slurm-bridge"' + "[" * 100_000, id="nested without end"),
    ],
)
def test_strangers_are_none(text: str) -> None:
    assert identities.decode(text) is None


@pytest.mark.parametrize(
    ("text", "cluster"),
    [
        pytest.param(edited(**{"slurm-bridge": 2}), "c-1", id="a newer version"),
        pytest.param(edited(**{"slurm-bridge": "1"}), "c-1", id="a version that is no number"),
        pytest.param(without("pods"), "c-1", id="pods are missing"),
        pytest.param(without("uid"), "c-1", id="the uid is missing"),
        pytest.param(edited(pods=[1]), "c-1", id="a pod that is no text"),
        pytest.param(edited(cause=7), "c-1", id="a cause that is no text"),
        pytest.param(edited(ended=7), "c-1", id="an end that is no text"),
        pytest.param(without("cluster"), None, id="whose is it"),
    ],
)
def test_ours_but_not_ours_to_read_is_told_apart_from_strangers(
    text: str, cluster: str | None
) -> None:
    with pytest.raises(UnreadableIdentityError) as raised:
        identities.decode(text)

    assert cluster == raised.value.cluster


def test_fields_that_a_later_release_adds_are_ignored() -> None:
    assert IDENTITY == identities.decode(edited(request={"cpus": 2}))
