"""GRES as Slurm writes them, counted."""

import pytest

from bridge.domain.model.devices import gres


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("gpu:a100:4(S:0-1),nic", {"gpu:a100": 4, "nic": 1}),
        ("shard:4K,bandwidth:2g", {"shard": 4096, "bandwidth": 2 << 30}),
        ("gpu:999999999999999999P", {"gpu": 2**63 - 1}),
        (f"gpu:{'9' * 4000}", {f"gpu:{'9' * 4000}": 1}),
        (f"gpu:{'9' * 5000}", {}),  # too long to be read
        ("gpu:٣", {"gpu:٣": 1}),
    ],
)
def test_counts_have_suffixes_and_a_bound(text: str, counts: dict[str, int]) -> None:
    assert counts == gres.counted(text)
