"""Nodes as the domain describes them, and requests as it writes them, before a real slurmctld.

What a pod's candidates are is said in Slurm's own language: here Slurm says how it reads it.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from bridge.domain.model import demand
from bridge.domain.model.jobs import JobPhase
from bridge.domain.model.placeholder import PlaceholderSpec
from bridge.domain.model.pods import Pod
from bridge.domain.nodes import registration
from bridge.domain.nodes import spec as node_spec
from bridge.domain.nodes.actions import SetCondition
from bridge.domain.nodes.decision import NodeFacts, NodeSettings
from bridge.domain.nodes.spec import Publishing
from bridge.domain.request import build, candidates, selection
from bridge.domain.request.build import Defaults
from bridge.domain.request.candidates import Pool
from bridge.domain.request.overrides import Overrides
from bridge.domain.request.permit import Permit
from bridge.slurm import jobs, nodes
from sandbox.client import Sandbox
from slurmclient.errors import Declined
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import names
from slurmruntime.values.ids import SlurmNode
from tests.make import placing as make
from tests.make.placing import term
from tests.slurm.conftest import Submit
from tests.slurm.placeholders import USER, in_phase

NVIDIA, AMD = "nvidia.com/gpu", "amd.com/gpu"
PUBLISHING = Publishing(
    cluster=make.CLUSTER,
    node_features=("zone", "rack", "node-role.kubernetes.io/*"),
    gpu_resources={NVIDIA: "gpu:a100", AMD: "gpu:mi300x"},
)
SETTINGS = NodeSettings(publishing=PUBLISHING)
DEFAULTS = Defaults(cluster=make.CLUSTER, gpu_resources=PUBLISHING.gpu_resources)
PERMIT = Permit(requester="alice", rule="everybody", user=USER, group=USER)
NOT_AVAILABLE = 2014
"""No node has all that is asked for."""

LOCALHOST = "127.0.0.1"
"""slurmctld looks up the name of each address; without a network any other one takes it 10 s."""

KUBE_NODES = tuple(
    replace(
        make.kube_node(
            f"bridged-{index}.example",
            labels={"zone": zone, "rack": f"r{index}", "node-role.kubernetes.io/worker": ""},
            annotations={names.PARTITIONS_ANNOTATION: "slurm-bridge"},
            taints=(
                make.taint(
                    f"{names.MANAGED_NODE_TAINT}={names.SCHEDULER_NAME}:NoSchedule",
                ),
            ),
        ),
        internal_ip=LOCALHOST,
        allocatable=replace(make.kube_node().allocatable, extended={gpus: 2}),
    )
    for index, (zone, gpus) in enumerate([("a", NVIDIA), ("a", NVIDIA), ("b", AMD), ("b", NVIDIA)])
)
DAEMONS = demand.total([make.demands("500m", "100Mi")])


@dataclass(frozen=True, slots=True, kw_only=True)
class Bridged:
    """Four nodes in both worlds."""

    client: SlurmClient
    pool: Pool

    async def accepted_on(self, spec: PlaceholderSpec) -> set[str]:
        """The nodes for which Slurm takes the job, each asked for by name."""
        accepted: set[str] = set()
        for kube_node in KUBE_NODES:
            only = (SlurmNode(kube_node.name),)
            try:
                job_id = await jobs.submit(self.client, replace(spec, required_nodes=only))
            except Declined as refusal:
                if refusal.error_number != NOT_AVAILABLE:
                    raise
            else:
                accepted.add(kube_node.name)
                await jobs.cancel(self.client, job_id)
        return accepted


@pytest.fixture
async def bridged(client: SlurmClient) -> AsyncIterator[Bridged]:
    for kube_node in KUBE_NODES:
        await nodes.create(client, node_spec.spec(kube_node, DAEMONS, PUBLISHING))
    pool = candidates.pool(KUBE_NODES, await nodes.listing(client), make.CLUSTER)
    yield Bridged(client=client, pool=pool)
    for kube_node in KUBE_NODES:
        await nodes.delete(client, SlurmNode(kube_node.name))


def built(pod: Pod, pool: Pool, constraints: str = "") -> PlaceholderSpec:
    asked = Overrides(constraints=constraints or None)
    return build.placeholder(pod, asked, DEFAULTS, pool, permit=PERMIT)


async def test_a_node_as_slurm_reports_it_is_in_step_with_what_we_asked_for(
    bridged: Bridged,
) -> None:
    """Otherwise every look would find something to do."""
    assert 4 == len(bridged.pool.nodes)
    for node in bridged.pool.nodes.values():
        both = NodeFacts(
            name=node.slurm.name,
            kube_node=node.kube,
            slurm_node=node.slurm,
            is_confirmed=True,
            daemons=DAEMONS,
        )
        decision = registration.plan(both, SETTINGS)
        (said,) = decision.actions
        assert isinstance(said, SetCondition)
        assert ("InService", "in step") == (said.condition.reason, decision.reason)


async def test_our_mark_outlives_a_crash_of_slurmctld(
    fragile_slurm: Sandbox,
) -> None:
    (kube_node, *_) = KUBE_NODES
    async with SlurmClient.open(
        fragile_slurm.slurmrestd_url, token_file=fragile_slurm.token_file
    ) as client:
        await nodes.create(client, node_spec.spec(kube_node, DAEMONS, PUBLISHING))
        fragile_slurm.run("scontrol", "reconfigure")  # writes the state at once
        fragile_slurm.restart("slurmctld", signal="KILL")
        found = await nodes.node(client, SlurmNode(kube_node.name))

        both = NodeFacts(
            name=found.name,
            kube_node=kube_node,
            slurm_node=found,
            is_confirmed=True,
            daemons=DAEMONS,
        )
        assert "in step" == registration.plan(both, SETTINGS).reason
        await nodes.delete(client, SlurmNode(kube_node.name))


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make.pod(), id="any pod"),
        pytest.param(make.pod(node_selector={"zone": "b"}), id="a selector"),
        pytest.param(
            make.pod(node_selector={"node-role.kubernetes.io/worker": "", "rack": "r1"}),
            id="an empty label value",
        ),
        pytest.param(
            make.pod(node_terms=(term(("rack", "In", "r0,r2"), ("zone", "In", "b,a")),)),
            id="one term with alternatives",
        ),
        pytest.param(
            make.pod(
                node_terms=(
                    term(("zone", "In", "a"), ("rack", "In", "r1,r3")),
                    term(("rack", "In", "r2")),
                )
            ),
            id="two terms",
        ),
        pytest.param(
            make.pod(
                node_selector={"zone": "a"},
                node_terms=(term(("rack", "In", "r0")), term(("rack", "In", "r1,r2"))),
            ),
            id="a selector and two terms",
        ),
    ],
)
async def test_slurm_reads_our_expressions_as_kubernetes_reads_the_labels(
    bridged: Bridged, pod: Pod
) -> None:
    spec = built(pod, bridged.pool)
    expected = {node.name for node in selection.matching(KUBE_NODES, pod)}

    assert spec.constraints
    assert expected == await bridged.accepted_on(spec)


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        ("rack=r2", {2}),
        ("rack=r0|rack=r3", {3}),
        ("zone=b&(rack=r0|rack=r3)", {3}),
        ("[rack=r2|rack=r3]", {2, 3}),
    ],
)
async def test_the_users_constraints_hold_besides_ours(
    bridged: Bridged, constraints: str, expected: set[int]
) -> None:
    spec = built(make.pod(node_selector={"zone": "b"}), bridged.pool, constraints)

    assert spec.constraints.endswith((constraints, f"({constraints})"))
    assert {KUBE_NODES[index].name for index in expected} == await bridged.accepted_on(spec)


async def test_slurm_picks_a_node_that_is_not_excluded(
    bridged: Bridged, submit: Submit, client: SlurmClient
) -> None:
    """Their names reach Slurm as a hostlist."""
    pod = make.pod(node_terms=(term(("zone", "NotIn", "a")),))
    spec = built(pod, bridged.pool)
    job = await in_phase(client, await submit(spec), JobPhase.RUNNING)

    assert ("bridged-0.example", "bridged-1.example") == spec.excluded_nodes == job.excluded_nodes
    assert () == job.required_nodes
    assert len(job.nodes) == 1
    assert set(job.nodes) < {"bridged-2.example", "bridged-3.example"}


@pytest.mark.parametrize(
    ("resource", "found"),
    [
        (NVIDIA, "NodeList=bridged-3.example GRES=gpu:a100:2(IDX:0-1)"),
        (AMD, "NodeList=bridged-2.example GRES=gpu:mi300x:2(IDX:0-1)"),
    ],
)
async def test_a_pod_with_gpus_gets_them(
    bridged: Bridged, submit: Submit, slurm: Sandbox, resource: str, found: str
) -> None:
    pod = make.pod(node_selector={"zone": "b"}, demand=make.demands(**{resource: "2"}))
    job = await in_phase(bridged.client, await submit(built(pod, bridged.pool)), JobPhase.RUNNING)

    shown = " ".join(slurm.run("scontrol", "show", "-d", "job", str(job.id)).split())
    node, _, gres = found.partition(" ")
    assert node in shown
    assert gres in shown


async def test_every_annotation_is_understood_by_slurm(
    bridged: Bridged, submit: Submit, client: SlurmClient, slurm: Sandbox
) -> None:
    """Held, so that it is only looked at."""
    asked = Overrides(
        comment="sweep 7, ünïcode",
        milli_cpu_per_task=2000,
        dependency="singleton",
        exclusive=True,
        gres="gres/gpu:a100:1",
        hold=True,
        job_name="train 7",
        memory_mib_per_node=2048,
        switches="1@60",
        time_limit_min=90,
        wckey="w",
    )
    permit = replace(PERMIT, nice=3, partition="slurm-bridge")
    spec = build.placeholder(make.pod(), asked, DEFAULTS, bridged.pool, permit=permit)
    shown = slurm.run("scontrol", "show", "job", str(await submit(spec)))

    for expected in (
        "JobName=train 7\n",
        "Comment=sweep 7, ünïcode",
        "MinMemoryNode=2G ",
        "NumCPUs=2 ",
        "OverSubscribe=NO ",
        "Partition=slurm-bridge ",
        "TimeLimit=01:30:00 ",
        "TresPerNode=gres/gpu:a100:1",
        "Dependency=singleton(unfulfilled)",
        "Priority=0 ",
    ):
        assert expected in shown
