"""Devices that are promised and registered."""

import pytest

from bridge.domain.model.devices import gres
from slurmoperator.nodesets.plan import troubles


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("", {}),
        ("gpu", {"gpu": 1}),
        ("gpu:2", {"gpu": 2}),
        ("gpu:a100", {"gpu": 1}),
        ("gpu:a100:2(S:0-1),gpu:v100:1", {"gpu": 3}),
        ("shard:no_consume:4K,nic", {"shard": 4096, "nic": 1}),
        ("gpu:9999999999999999999999", {"gpu": 1}),
        (",,:3", {}),
    ],
)
def test_devices_are_counted_by_kind(text: str, counts: dict[str, int]) -> None:
    assert counts == gres.by_kind(gres.counted(text))


def test_what_a_nodeset_promises() -> None:
    assert {"gpu": 4, "nic": 1} == troubles.promised_devices("CPUs=4 gres=gpu:a100:4,nic Weight=2")
    assert {} == troubles.promised_devices("Features=gres Weight=2")


@pytest.mark.parametrize(
    ("registered", "said"),
    [
        ("", ["0 of 2 gpu"]),
        ("gpu:a100:1", ["1 of 2 gpu"]),
        ("gpu:a100:2(S:0)", []),
        ("gpu:3", []),
    ],
)
def test_what_a_node_lacks(registered: str, said: list[str]) -> None:
    assert said == list(troubles.lacking_devices({"gpu": 2}, registered))
