"""The effective request: pod, annotations, defaults and policy become a placeholder, or faults."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from bridge.domain.model.identities import Identity
from bridge.domain.model.placeholder import PlaceholderSpec
from bridge.domain.model.pods import Pod
from bridge.domain.request import build, candidates, overrides
from bridge.domain.request.build import Defaults
from bridge.domain.request.overrides import Overrides
from bridge.domain.request.permit import Permit
from slurmruntime.values import names
from slurmruntime.values.faults import Fault, Refusal
from slurmruntime.values.ids import SlurmNode, WorkloadKey
from tests.make import placing as make
from tests.make.placing import MARK, demands

PERMIT = Permit(
    requester="alice",
    rule="everybody",
    user="kubernetes",
    group="kubernetes",
    account="k8s",
    partition="bridge",
)
DEFAULTS = Defaults(
    cluster=make.CLUSTER,
    default_milli_cpu=2000,
    gpu_resources={"nvidia.com/gpu": "gpu", "example.com/a100": "gpu:a100"},
)
POOL = candidates.pool(
    [make.kube_node("k1"), make.kube_node("k2")],
    [
        make.slurm_node(name, cpus=64, gres="gpu:a100:8,gpu:h100:8,nic:8,shard:8")
        for name in ("k1", "k2")
    ],
    make.CLUSTER,
)


def built(
    pod: Pod,
    defaults: Defaults = DEFAULTS,
    *,
    permit: Permit = PERMIT,
    avoid: tuple[str, ...] = (),
    **asked: Any,
) -> PlaceholderSpec:
    avoided = tuple(map(SlurmNode, avoid))
    return build.placeholder(pod, Overrides(**asked), defaults, POOL, permit=permit, avoid=avoided)


def faults(pod: Pod, **asked: Any) -> list[str]:
    with pytest.raises(Refusal) as refusal:
        build.placeholder(pod, Overrides(**asked), DEFAULTS, POOL, permit=PERMIT)
    return [
        fault.text.replace(f"metadata.annotations[{names.REQUEST_PREFIX}", "[")
        for fault in refusal.value.faults
    ]


def test_an_ordinary_pod_becomes_a_job_of_the_configured_user() -> None:
    pod = make.pod(demand=demands("1500m", "1Gi", **{"nvidia.com/gpu": "2"}))

    expected = PlaceholderSpec(
        identity=Identity(
            cluster=make.CLUSTER,
            kind="Pod",
            namespace="team-a",
            name="train",
            key=WorkloadKey("u-1"),
            pods=(pod.uid,),
        ),
        name="train",
        user="kubernetes",
        group="kubernetes",
        account="k8s",
        partition="bridge",
        cpus_per_task=2,
        memory_mib_per_node=1024,
        gres_per_node="gres/gpu:2",
        constraints=f"{MARK}&{make.NO_TAINTS}",
    )

    assert expected == built(pod)


def test_annotations_outweigh_everything() -> None:
    begin = datetime(2026, 12, 24, tzinfo=UTC)
    asked: dict[str, Any] = {
        "begin_at": begin,
        "comment": "sweep 7",
        "constraints": "a100",
        "milli_cpu_per_task": 4000,
        "deadline_at": datetime(2026, 12, 25, tzinfo=UTC),
        "dependency": "afterok:1",
        "exclusive": True,
        "gres": "gres/gpu:a100:4",
        "hold": True,
        "job_name": "job",
        "licenses": "matlab:1",
        "max_nodes": 4,
        "memory_mib_per_node": 2048,
        "min_nodes": 1,
        "switches": "1",
        "time_limit_min": 5,
        "wckey": "w",
    }
    granted: dict[str, Any] = {
        "account": "physics",
        "nice": 10,
        "partition": "gpu",
        "priority": 7,
        "qos": "high",
        "reservation": "r1",
    }
    spec = built(make.pod(deadline_s=999), permit=replace(PERMIT, **granted), **asked)

    renamed = {"job_name", "gres", "constraints", "min_nodes", "max_nodes", "milli_cpu_per_task"}
    expected = {name: value for name, value in asked.items() if name not in renamed} | {
        "name": "job",
        "gres_per_node": "gres/gpu:a100:4",
        "cpus_per_task": 4,
        "constraints": f"{MARK}&{make.NO_TAINTS}&a100",
    }
    expected |= granted
    assert expected == {name: getattr(spec, name) for name in expected}
    assert (1, 1) == (spec.nodes_min, spec.nodes_max)


def test_every_annotation_is_used_or_refused() -> None:
    """What a new field would be forgotten in."""
    unused = {"min_nodes", "max_nodes", "user_id", "group_id"}
    renamed = {
        "job_name": "name",
        "gres": "gres_per_node",
        "milli_cpu_per_task": "cpus_per_task",
    }
    used = {renamed.get(field.attribute, field.attribute) for field in overrides.FIELDS}

    assert used - unused <= set(PlaceholderSpec.__dataclass_fields__)


@pytest.mark.parametrize(
    ("cpu", "memory", "expected"),
    [
        pytest.param("0", "0", (2, 256), id="a pod without requests gets the configured least"),
        pytest.param("100m", "0", (1, 256), id="each by itself"),
        pytest.param("0", "10Mi", (2, 10), id="a small request stays small"),
    ],
)
def test_defaults_are_for_what_a_pod_does_not_request(
    cpu: str, memory: str, expected: tuple[int, int]
) -> None:
    spec = built(make.pod(demand=demands(cpu, memory)))

    assert expected == (spec.cpus_per_task, spec.memory_mib_per_node)


@pytest.mark.parametrize(
    ("deadline_s", "asked_min", "expected"),
    [
        (None, None, None),
        (90, None, 2),
        (60, None, 1),
        (1, None, 1),
        (90, 30, 30),
    ],
)
def test_the_time_limit_comes_from_annotation_deadline_or_partition(
    deadline_s: int | None, asked_min: int | None, expected: int | None
) -> None:
    assert (
        expected == built(make.pod(deadline_s=deadline_s), time_limit_min=asked_min).time_limit_min
    )


def test_gpus_of_several_kinds_are_all_asked_for() -> None:
    wanted = demands(**{"nvidia.com/gpu": "2", "example.com/a100": "1", "example.com/fpga": "1"})

    extended = {"nvidia.com/gpu": 0, "example.com/fpga": 1}  # a device plugin may be starting
    kube_node = make.kube_node("k1")
    allocatable = replace(kube_node.allocatable, extended=extended)
    has_fpga = candidates.pool(
        [replace(kube_node, allocatable=allocatable)],
        [make.slurm_node("k1", gres="gpu:a100:2")],
        make.CLUSTER,
    )
    found = build.placeholder(
        make.pod(demand=wanted), Overrides(), DEFAULTS, has_fpga, permit=PERMIT
    )

    assert "gres/gpu:2,gres/gpu:a100:1" == found.gres_per_node


@pytest.mark.parametrize(
    ("asked_min", "most_min", "expected"),
    [
        pytest.param(None, 30, 30, id="Slurm's own default might be longer"),
        pytest.param(10, 30, 10, id="asked for less"),
    ],
)
def test_no_job_gets_more_time_than_the_policy_allows(
    asked_min: int | None, most_min: int, expected: int
) -> None:
    spec = built(
        make.pod(),
        permit=replace(PERMIT, time_limit_max_min=most_min),
        time_limit_min=asked_min,
    )

    assert expected == spec.time_limit_min


@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        pytest.param(
            {"milli_cpu_per_task": 3000},
            "[cpu-per-task]: expected at least the 4 CPUs that the pod requests, found 3",
            id="CPUs",
        ),
        pytest.param(
            {"memory_mib_per_node": 512},
            "[mem-per-node]: expected at least the 1024Mi that the pod requests, found 512Mi",
            id="memory",
        ),
        pytest.param(
            {"gres": "gres/gpu:a100"},
            "[gres]: expected at least the 2 gpu that the pod requests, found 1",
            id="GPUs",
        ),
        pytest.param(
            {"gres": "gres/shard:8"},
            "[gres]: expected at least the 2 gpu that the pod requests, found 0",
            id="another GRES",
        ),
    ],
)
def test_slurm_must_not_be_asked_for_less_than_the_pod_takes(
    asked: dict[str, Any], fault: str
) -> None:
    pod = make.pod(demand=demands("4", "1Gi", **{"nvidia.com/gpu": "2"}))

    assert [fault] == faults(pod, **asked)


@pytest.mark.parametrize(
    "gres", ["gres/gpu:2", "gres/gpu:a100:1,gres/gpu:h100:1", "gres/gpu:a100:8"]
)
def test_gpus_may_be_asked_for_by_type(gres: str) -> None:
    pod = make.pod(demand=demands(**{"nvidia.com/gpu": "2"}))

    assert gres == built(pod, gres=gres).gres_per_node


@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        ({"min_nodes": 2}, "[min-nodes]: a single pod runs on 1 node, found 2"),
        (
            {
                "begin_at": datetime(2026, 12, 25, tzinfo=UTC),
                "deadline_at": datetime(2026, 12, 24, tzinfo=UTC),
            },
            (
                "[deadline]: expected a time after begin (2026-12-25T00:00:00+00:00), "
                "found 2026-12-24T00:00:00+00:00"
            ),
        ),
    ],
)
def test_contradictions_are_faults(asked: dict[str, Any], fault: str) -> None:
    assert [fault] == faults(make.pod(), **asked)


def test_limits_may_be_required() -> None:
    strict = replace(DEFAULTS, required_limits=("memory",))
    may_use_more = replace(demands(), unlimited=("cpu", "memory"))

    assert () == build.faults(may_use_more, Overrides(), DEFAULTS)
    (fault,) = build.faults(may_use_more, Overrides(), strict)
    assert "spec.containers[*].resources.limits[memory]" == fault.path
    assert () == build.faults(replace(demands(), unlimited=("cpu",)), Overrides(), strict)


def test_every_fault_is_told_at_once() -> None:
    pod = make.pod(node_selector={"zone": "nowhere"})

    found = faults(pod, min_nodes=2, memory_mib_per_node=1)

    assert ["[mem-per-node]", "[min-nodes]", "spec"] == [text.split(": ")[0] for text in found]


def test_nodes_to_avoid_are_excluded_as_far_as_slurm_knows_them() -> None:
    """Slurm refuses unknown names; and with every node excluded the job would never start."""
    pod = make.pod()

    assert (SlurmNode("k1"),) == built(pod, avoid=("k1", "gone")).excluded_nodes
    assert () == built(pod, avoid=("k1", "k2")).excluded_nodes


def test_faults_can_be_asked_without_a_node_in_sight() -> None:
    """The webhook does; whether the pod is alone it does not know."""
    assert () == build.faults(demands(), Overrides(min_nodes=2), DEFAULTS)
    found = build.faults(demands(), Overrides(min_nodes=2), DEFAULTS, tasks=1)
    assert (Fault(overrides.path("min-nodes"), "a single pod runs on 1 node, found 2"),) == found


def test_nodes_are_chosen_once_for_pods_that_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among ten thousand nodes that takes a tenth of a second."""
    choose, chosen = candidates.choose, []

    def counting(pod: Pod, among: candidates.Pool, **asked: Any) -> candidates.Candidates:
        chosen.append(pod)
        return choose(pod, among, **asked)

    monkeypatch.setattr(candidates, "choose", counting)
    POOL.chosen.clear()
    alike = [built(make.pod(name=f"p{n}")) for n in range(10)]
    assert 1 == len(chosen)
    assert 1 == len({each.constraints for each in alike})
    avoiding = built(make.pod(), avoid=("k1",))
    assert (SlurmNode("k2"),) == avoiding.required_nodes or avoiding.excluded_nodes
    built(make.pod(demand=demands(cpu="3")))
    built(make.pod(tolerations=()))
    assert 4 == len(chosen)
    assert {} == replace(POOL).chosen
