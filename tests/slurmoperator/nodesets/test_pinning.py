"""To which Kubernetes node a worker returns."""

from collections.abc import Mapping

import pytest

from slurmoperator.nodesets.plan.placing import pins


@pytest.mark.parametrize(
    ("before", "bound", "wanted", "shares", "expected"),
    [
        ({}, {0: "a", 1: "b"}, [0, 1], False, {"0": "a", "1": "b"}),
        ({"0": "a"}, {}, [0], False, {"0": "a"}),
        ({"0": "a"}, {0: "b"}, [0], False, {"0": "a"}),  # by hand; it goes back next time
        ({"0": "gone"}, {}, [0], False, {}),
        ({"0": "gone"}, {0: "b"}, [0], False, {"0": "b"}),
        ({"0": "a", "1": "b"}, {0: "a", 1: "b"}, [0], False, {"0": "a"}),  # scaled in
        ({"0": "a", "1": "b"}, {1: "a"}, [0, 1], False, {"1": "b"}),  # taken by another one
        ({"0": "a", "1": "b"}, {1: "a"}, [0, 1], True, {"0": "a", "1": "b"}),
    ],
)
def test_its_first_node_stays_its_own(
    before: Mapping[str, str],
    bound: Mapping[int, str],
    wanted: list[int],
    expected: Mapping[str, str],
    *,
    shares: bool,
) -> None:
    there = {"a", "b"}
    assert expected == pins(before, bound, desired=wanted, nodes=there, shares=shares)
