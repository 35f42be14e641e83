"""Which nodes have a live agent."""

from datetime import UTC, datetime

import pytest

from bridge.domain.model.cores import agents
from bridge.domain.model.pods import Condition, Pod
from slurmruntime.model.nodes import KubeNodeFacts
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode, PodUid

NOW = datetime(2026, 1, 1, tzinfo=UTC)
K1 = KubeNode("k1")
FOR_AGENTS = {
    names.EXTERNAL_NODE_LABEL: "true",
    names.CPU_MANAGER_LABEL: agents.NO_MANAGER,
}


def agent(ready: str = "True", *, node: KubeNode | None = K1, is_deleting: bool = False) -> Pod:
    return Pod(
        uid=PodUid("u"),
        namespace="slurm-bridge-system",
        name="agent",
        created_at=NOW,
        kube_node=node,
        deletion_at=NOW if is_deleting else None,
        conditions=(Condition(type="Ready", status=ready),) if ready else (),
    )


@pytest.mark.parametrize(
    ("pod", "is_alive"),
    [
        pytest.param(agent(), True, id="ready"),
        pytest.param(agent("False"), False, id="it says that it cannot pin"),
        pytest.param(agent("Unknown"), False, id="its node does not answer"),
        pytest.param(agent(""), False, id="not started yet"),
        pytest.param(agent(is_deleting=True), False, id="on its way out"),
        pytest.param(agent(node=None), False, id="nowhere"),
    ],
)
def test_an_agent_is_alive_where_its_pod_is_ready(pod: Pod, *, is_alive: bool) -> None:
    assert ({K1} if is_alive else frozenset()) == agents.alive([pod])


@pytest.mark.parametrize(
    ("labels", "is_wanted"),
    [
        pytest.param(FOR_AGENTS, True, id="external and labelled"),
        pytest.param({names.EXTERNAL_NODE_LABEL: "true"}, False, id="not vouched for"),
        pytest.param({**FOR_AGENTS, names.CPU_MANAGER_LABEL: "static"}, False, id="static"),
        pytest.param({**FOR_AGENTS, names.HYBRID_NODE_LABEL: "true"}, False, id="hybrid"),
        pytest.param({names.CPU_MANAGER_LABEL: agents.NO_MANAGER}, False, id="not Slurm's"),
    ],
)
def test_agents_pin_on_labelled_external_nodes_only(
    labels: dict[str, str], *, is_wanted: bool
) -> None:
    node = KubeNodeFacts(name=K1, uid="u", labels=labels)

    assert is_wanted is agents.is_wanted(node)
    assert is_wanted is agents.pins(node, {K1})
    assert not agents.pins(node, {KubeNode("k2")})
