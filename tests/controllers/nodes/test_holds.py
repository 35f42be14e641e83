"""Which pods fillers stand in for: those that run without a job until somebody decides."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from bridge.domain.model import grant as grants
from bridge.domain.model.grant import Grant
from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import JobEnd
from bridge.domain.model.pods import Pod
from bridge.domain.observation.view import Evidence, View
from bridge.kube.decode import PODS
from controllers.nodes.gathering import Holdings
from slurmruntime.kube.cache import Cache
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId, KubeNode, WorkloadKey
from tests.make import lives as build

HERE = KubeNode("here")
FAILED = build.view(build.ended(JobEnd.NODE_FAIL))
FORGOTTEN = build.view()
WHOSE = Identity(
    cluster=ClusterId("c"),
    kind="JobSet",
    namespace="ns",
    name="train",
    key=WorkloadKey("w"),
    pods=(),
)
GRANTED = replace(
    build.bound(),
    annotations={
        names.GRANT_ANNOTATION: grants.encode(
            WHOSE,
            Grant(name="train", user="alice", group="team", memory_mib_per_node=512, started_s=1),
        )
    },
)


@pytest.mark.parametrize(
    ("pod", "view", "evidence", "is_held", "expected"),
    [
        pytest.param(build.bound(), FAILED, Evidence.NONE, True, True, id="held back"),
        pytest.param(build.bound(), FAILED, Evidence.NONE, False, False, id="about to be evicted"),
        pytest.param(
            build.deleting(build.bound()), FAILED, Evidence.NONE, True, False, id="on its way out"
        ),
        pytest.param(
            build.bound(), FORGOTTEN, Evidence.NONE, False, True, id="an operator decides"
        ),
        pytest.param(GRANTED, FORGOTTEN, Evidence.PENDING, True, False, id="being looked up"),
        pytest.param(GRANTED, FORGOTTEN, Evidence.LOST, True, False, id="about to be restored"),
    ],
)
def test_a_filler_stands_in_for_a_pod_that_is(
    pod: Pod, view: View, evidence: Evidence, is_held: bool, expected: bool
) -> None:
    asked: list[KubeNode] = []

    def bereft_on(kube_node: KubeNode) -> tuple[Pod, ...]:
        asked.append(kube_node)
        return (pod,)

    def seen(_pod: Pod, _key: WorkloadKey) -> View:
        return replace(view, surely_none=True)

    holdings = Holdings(
        Cache(PODS),
        SimpleNamespace(view=seen),  # type: ignore[arg-type]  # all that is asked
        breaker=SimpleNamespace(bereft_on=bereft_on, holds=lambda: is_held),  # type: ignore[arg-type]
        lookup=SimpleNamespace(finding=lambda _: SimpleNamespace(evidence=evidence)),  # type: ignore[arg-type]
        restorer=SimpleNamespace(refusal=lambda _: None),  # type: ignore[arg-type]
    )

    assert expected is (holdings.unbacked(HERE) == (pod,))
    assert [HERE] == asked
