"""The mark of a SlurmJob's Slurm job."""

import json
from dataclasses import replace

import pytest

from bridge.domain.model import batch, identities
from bridge.domain.model.batch import BatchMark
from bridge.domain.model.identities import Identity, UnreadableIdentityError
from slurmruntime.values.ids import ClusterId, PodUid, WorkloadKey

MARK = BatchMark(
    cluster=ClusterId("east"),
    namespace="physics",
    name="train",
    key=WorkloadKey("5b1c"),
    attempt=2,
)
PLACEHOLDER = Identity(
    cluster=MARK.cluster,
    kind="Pod",
    namespace="physics",
    name="train",
    key=MARK.key,
    pods=(PodUid("5b1c"),),
)


def test_a_mark_is_read_as_it_was_written() -> None:
    assert MARK == batch.decode(batch.encode(MARK))


def test_neither_kind_of_mark_is_read_as_the_other() -> None:
    assert batch.decode(identities.encode(PLACEHOLDER)) is None
    assert identities.decode(batch.encode(MARK)) is None


@pytest.mark.parametrize("name", ['"slurm-bridge":1', "slurm-bridge"])
def test_a_name_in_a_mark_makes_it_no_placeholder(name: str) -> None:
    written = batch.encode(replace(MARK, name=name))

    assert identities.decode(written) is None
    assert replace(MARK, name=name) == batch.decode(written)


@pytest.mark.parametrize(
    "text", ["", "hello", "[]", '"slurm-job"', '{"slurm-job"', '{"a":"slurm-job"}']
)
def test_what_has_no_mark_is_a_strangers(text: str) -> None:
    assert batch.decode(text) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"slurm-job": 2},
        {"attempt": 0},
        {"attempt": True},
        {"attempt": "1"},
        {"name": None},
        {"namespace": 7},
    ],
)
def test_a_damaged_mark_names_whose_it_is_as_far_as_it_can_be_read(
    changes: dict[str, object],
) -> None:
    document = {**json.loads(batch.encode(MARK)), **changes}

    with pytest.raises(UnreadableIdentityError) as raised:
        batch.decode(json.dumps(document))

    assert (MARK.cluster, MARK.key) == (raised.value.cluster, raised.value.workload)
