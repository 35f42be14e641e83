"""Of NodeSets whose nodes would have the same names, the oldest one counts."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.workers import namesakes
from tests.slurmoperator.configuration.given import node_set

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def made(name: str, age: int, hostname: str = "", mode: str = "StatefulSet") -> NodeSetObject:
    found = node_set(name, hostname=hostname, scalingMode=mode)
    meta = msgspec.structs.replace(
        found.metadata, uid=f"uid-{name}", creation_timestamp=NOW - timedelta(minutes=age)
    )
    return msgspec.structs.replace(found, metadata=meta)


@pytest.mark.parametrize(
    ("sets", "left_out"),
    [
        ([made("cpu", 9), made("gpu", 8)], {}),
        ([made("a", 9, "cpu-"), made("b", 8, "cpu-1")], {"uid-b": "a"}),
        ([made("a", 8, "cpu-"), made("b", 9, "cpu-1")], {"uid-a": "b"}),
        ([made("a", 9, "cpu-"), made("b", 8, "cpu-12"), made("c", 7, "cpu-1")], {"uid-b": "a", "uid-c": "a"}),
        ([made("a", 9, "cpu-1-"), made("b", 8, "cpu-")], {}),  # cpu-1-0 is no number of cpu-
        ([made("a", 9, "cpu-"), made("b", 8, "cpu")], {"uid-b": "a"}),  # one name in Slurm
        ([made("a", 9, "cpu-", "DaemonSet"), made("b", 8, "cpu-1")], {}),
    ],
)  # fmt: skip
def test_the_younger_one_is_left_out(sets: list[NodeSetObject], left_out: dict[str, str]) -> None:
    assert left_out == namesakes(sets) == namesakes(reversed(sets))
