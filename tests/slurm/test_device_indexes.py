"""The devices of a job on a node, as Slurm numbers them."""

import pytest

from bridge.slurm.allocated import devices


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gpu:example:2(IDX:0-1)", {"gpu:example": (0, 1)}),
        ("gpu:a100:3(IDX:0-1,4),nic:1(IDX:2)", {"gpu:a100": (0, 1, 4), "nic": (2,)}),
        ("gpu:2(IDX:0,3)", {"gpu": (0, 3)}),
        ("gpu:2", {}),
        ("gpu:3(IDX:0-1)", {}),
        ("gpu:a100:1(IDX:N/A)", {}),
        ("", {}),
        ("(null)", {}),
    ],
)
def test_indexes_are_read_from_what_slurm_writes(
    text: str, found: dict[str, tuple[int, ...]]
) -> None:
    assert dict(devices.indexes(text)) == found
