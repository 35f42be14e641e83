"""The one patch that places a pod: all of it, on exactly that pod, and nothing its user wrote is lost."""

import pytest

from bridge.domain.model.pods import Pod
from bridge.kube import decode, patches, writes
from sandbox.client import Sandbox
from slurmruntime.kube import errors
from slurmruntime.kube.client import KubeClient
from slurmruntime.model.affinity import NodeTerm, Requirement
from slurmruntime.values import names
from slurmruntime.values.ids import JobId, KubeNode, Sluid
from tests.kube.conftest import CreatePod
from tests.kube.manifests import expression, pod, preferred, required

NODE = KubeNode("node-2")
JOB = JobId(4711)
SLUID = Sluid("s40SM7ZBZ6HW00")

PIN = Requirement(key="metadata.name", operator="In", values=(NODE,))
SSD = Requirement(key="disk", operator="In", values=("ssd",))
ARM = Requirement(key="arch", operator="In", values=("arm64",))
ANY_NODE_FIELD = {"key": "metadata.name", "operator": "NotIn", "values": ["node-0"]}
POD_AFFINITY = {
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 1,
                "podAffinityTerm": {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": {"app": "x"}},
                },
            }
        ]
    }
}


def assignment(pod: Pod) -> patches.JsonPatch:
    return patches.assign(pod, job_id=JOB, kube_node=NODE, sluid=SLUID, grant="granted")


@pytest.mark.parametrize(
    ("affinity", "terms"),
    [
        pytest.param(None, (NodeTerm(match_fields=(PIN,)),), id="none"),
        pytest.param(POD_AFFINITY, (NodeTerm(match_fields=(PIN,)),), id="only about other pods"),
        pytest.param(
            {"nodeAffinity": preferred(expression("disk", "ssd"))},
            (NodeTerm(match_fields=(PIN,)),),
            id="only a preference",
        ),
        pytest.param(
            {"nodeAffinity": required({"matchExpressions": [expression("disk", "ssd")]})},
            (NodeTerm(match_labels=(SSD,)),),
            id="one term",
        ),
        pytest.param(
            {
                "nodeAffinity": required(
                    {"matchExpressions": [expression("disk", "ssd")]},
                    {"matchExpressions": [expression("arch", "arm64")]},
                )
                | preferred(expression("disk", "ssd")),
                **POD_AFFINITY,
            },
            (NodeTerm(match_labels=(SSD,)), NodeTerm(match_labels=(ARM,))),
            id="alternatives beside everything else",
        ),
        pytest.param(
            {"nodeAffinity": required({"matchFields": [ANY_NODE_FIELD]})},
            (
                NodeTerm(
                    match_fields=(
                        Requirement(key="metadata.name", operator="NotIn", values=("node-0",)),
                    )
                ),
            ),
            id="a term on fields",
        ),
        pytest.param(
            {"nodeAffinity": required({}, {"matchExpressions": [expression("disk", "ssd")]})},
            (NodeTerm(), NodeTerm(match_labels=(SSD,))),
            id="a term that matches no node stays so",
        ),
    ],
)
async def test_assign_pins_the_pod_unless_its_user_wrote_node_terms(
    client: KubeClient,
    control_plane: Sandbox,
    create_pod: CreatePod,
    affinity: dict[str, object] | None,
    terms: tuple[NodeTerm, ...],
) -> None:
    created = create_pod(pod("a", affinity=affinity))

    assigned = await writes.patch_pod(client, created, assignment(created))

    assert terms == assigned.node_terms
    assert NODE == assigned.assigned_node
    assert JOB == assigned.job_id
    assert () == assigned.gates
    assert (names.FINALIZER,) == assigned.finalizers
    path = f"/api/v1/namespaces/{created.namespace}/pods/a"
    written = control_plane.admin.get(path)["spec"]["affinity"]
    for kind, wish in (affinity or {}).items():
        if kind != "nodeAffinity":
            assert wish == written[kind]
    preferences = "preferredDuringSchedulingIgnoredDuringExecution"
    wished = (affinity or {}).get("nodeAffinity", {})
    assert isinstance(wished, dict)
    assert wished.get(preferences) == written["nodeAffinity"].get(preferences)


async def test_assign_leaves_other_gates_labels_and_annotations_alone(
    client: KubeClient, create_pod: CreatePod
) -> None:
    created = create_pod(
        pod(
            "a",
            gates=("example.com/before", names.GATE, "example.com/after"),
            labels={"app": "x"},
            annotations={"example.com/note": "~/y"},
        )
    )

    assigned = await writes.patch_pod(client, created, assignment(created))

    assert ("example.com/before", "example.com/after") == assigned.gates
    ours = {names.JOB_ID_LABEL: "4711", names.BRIDGED_LABEL: "true"}
    assert {"app": "x", **ours} == assigned.labels
    assert {
        "example.com/note": "~/y",
        names.NODE_ANNOTATION: NODE,
        names.SLUID_ANNOTATION: SLUID,
        names.GRANT_ANNOTATION: "granted",
        **names.AUTOSCALERS,
    } == assigned.annotations


async def test_a_second_assign_is_refused(client: KubeClient, create_pod: CreatePod) -> None:
    created = create_pod(pod("a"))
    await writes.patch_pod(client, created, assignment(created))

    second = patches.assign(
        created, job_id=JobId(4712), kube_node=KubeNode("x"), sluid=None, grant=""
    )
    with pytest.raises(errors.Conflict) as refusal:
        await writes.patch_pod(client, created, second)

    assert (422, "Invalid") == (refusal.value.status, refusal.value.reason)
    now = await decode.get_pod(client, created.namespace, "a")
    assert (JOB, NODE, SLUID) == (now.job_id, now.assigned_node, now.sluid)


@pytest.mark.parametrize(
    "meanwhile",
    [
        pytest.param({"metadata": {"labels": {"app": "x"}}}, id="the first label"),
        pytest.param({"metadata": {"annotations": {"note": "x"}}}, id="the first annotation"),
        pytest.param(
            {"spec": {"affinity": {"nodeAffinity": preferred(expression("disk", "ssd"))}}},
            id="a preference",
        ),
    ],
)
async def test_assign_is_refused_rather_than_lose_what_was_added_meanwhile(
    client: KubeClient,
    control_plane: Sandbox,
    create_pod: CreatePod,
    meanwhile: dict[str, object],
) -> None:
    created = create_pod(pod("a"))
    control_plane.admin.patch(f"/api/v1/namespaces/{created.namespace}/pods/a", meanwhile)

    with pytest.raises(errors.Conflict):
        await writes.patch_pod(client, created, assignment(created))

    now = await decode.get_pod(client, created.namespace, "a")
    assert now.is_gated
    assigned = await writes.patch_pod(client, now, assignment(now))
    assert NODE == assigned.assigned_node


async def test_assign_of_a_pod_without_our_gate_is_not_even_built(create_pod: CreatePod) -> None:
    created = create_pod(pod("a", gates=()))

    with pytest.raises(ValueError, match="has no slurm-bridge"):
        assignment(created)
