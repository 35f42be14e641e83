"""What a waiting job says about nodes that get a taint, or come with one, before it starts."""

import pytest

from bridge.domain.request import candidates
from bridge.domain.request.candidates import Candidates
from slurmruntime.model.affinity import Toleration
from tests.domain.request.zones import OURS, pool
from tests.make import placing as build
from tests.make.placing import MARK


@pytest.mark.parametrize(
    ("key", "effect", "expected"),
    [
        ("gpu", "", MARK),
        ("", "", MARK),
        ("gpu", "PreferNoSchedule", OURS),
        ("node.kubernetes.io/x", "", OURS),
    ],
)
def test_only_who_may_tolerate_more_may_get_a_node_with_the_first_taint(
    key: str, effect: str, expected: str
) -> None:
    toleration = Toleration(key=key, operator="Exists", effect=effect)
    pod = build.pod(tolerations=(build.OUR_TOLERATION, toleration))
    assert Candidates(constraints=expected) == candidates.choose(pod, pool())
