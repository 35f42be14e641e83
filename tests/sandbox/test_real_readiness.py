"""When a real node is handed to Slurm, and what it is said to lack until then."""

from typing import Any

import pytest

from sandbox.kwok import GPU_RESOURCE
from sandbox.realnodes.box import lacking


def node(*, ready: str = "True", taint: str = "", gpus: int = 0) -> dict[str, Any]:
    return {
        "spec": {"taints": [{"key": taint}] if taint else []},
        "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "allocatable": {GPU_RESOURCE: str(gpus)} if gpus else {},
        },
    }


@pytest.mark.parametrize(
    ("there", "sliced", "gpus", "dra"),
    [(node(), 0, 0, 0), (node(gpus=2), 0, 2, 0), (node(), 4, 0, 4)],
)
def test_a_node_that_has_all_lacks_nothing(
    there: dict[str, Any], sliced: int, gpus: int, dra: int
) -> None:
    assert not lacking(there, sliced, gpus=gpus, dra=dra)


@pytest.mark.parametrize(
    ("there", "sliced", "expected"),
    [
        (None, 0, "its Node object"),
        (node(ready="False"), 4, "readiness"),
        (node(taint="node.kubernetes.io/not-ready"), 4, "readiness"),
        (node(gpus=1), 4, "its plugin offers 1, expected 0"),
        (node(), 0, "its ResourceSlices have 0, expected 4"),
        (node(), 8, "its ResourceSlices have 8, expected 4"),
    ],
)
def test_the_first_thing_that_it_lacks_is_named(
    there: dict[str, Any] | None, sliced: int, expected: str
) -> None:
    assert expected in lacking(there, sliced, gpus=0, dra=4)
