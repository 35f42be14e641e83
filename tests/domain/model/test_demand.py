"""What a pod needs: kube-scheduler's sum, told as cases, and checked against a simulation of the pod's life."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.domain.model import demand
from bridge.domain.model.demand import Demand, Resources

GIB = 2**30


def needs(cpu: str | None = None, memory: str | None = None, **others: str) -> Resources:
    named = {"cpu": cpu, "memory": memory, **others}
    return Resources({name: amount for name, amount in named.items() if amount is not None})


def sidecar(cpu: str, memory: str) -> Resources:
    return needs(cpu, memory)._replace(sidecar=True)


@pytest.mark.parametrize(
    ("containers", "init_containers", "cpus", "gib"),
    [
        pytest.param([needs("1", "1Gi"), needs("2", "3Gi")], [], 3, 4, id="containers add up"),
        pytest.param(
            [needs("2", "1Gi")],
            [sidecar("1", "2Gi")],
            3,
            3,
            id="a sidecar runs beside the containers",
        ),
        pytest.param(
            [needs("2", "1Gi")],
            [needs("4", "2Gi"), needs("3", "5Gi")],
            4,
            5,
            id="init containers run one after another, each resource at its own peak",
        ),
        pytest.param(
            [needs("2", "1Gi")],
            [needs("4", "2Gi"), sidecar("3", "3Gi")],
            5,
            4,
            id="a sidecar after an init container is not there yet while that runs",
        ),
        pytest.param(
            [needs("2", "1Gi")],
            [sidecar("4", "2Gi"), needs("10", "2Gi")],
            14,
            4,
            id="a sidecar before an init container is there while that runs",
        ),
        pytest.param(
            [needs("2", "2Gi")],
            [sidecar("4", "2Gi"), needs("1", "1Gi")],
            6,
            4,
            id="a small init container after a sidecar changes nothing",
        ),
        pytest.param(
            [needs("3", "3Gi")],
            [
                sidecar("2", "2Gi"),
                sidecar("1", "1Gi"),
                sidecar("3", "3Gi"),
                sidecar("5", "5Gi"),
                needs("20", "20Gi"),
            ],
            31,
            31,
            id="several sidecars before a large init container",
        ),
        pytest.param(
            [needs("3", "3Gi")],
            [needs("25", "25Gi"), sidecar("1", "1Gi"), needs("3", "3Gi"), sidecar("5", "5Gi")],
            25,
            25,
            id="a large first init container outweighs everything",
        ),
    ],
)
def test_the_peak_of_a_pods_life_counts(
    containers: list[Resources], init_containers: list[Resources], cpus: int, gib: int
) -> None:
    found = demand.of(containers, init_containers)

    assert (cpus * 1000, gib * GIB) == (found.milli_cpu, found.memory_bytes)
    assert (cpus, gib * 1024) == (found.cpus(1000), found.memory_mib)


def test_overhead_comes_on_top_of_everything() -> None:
    found = demand.of([needs("2", "1Gi")], [needs("4", "2Gi")], {"cpu": "250m", "memory": "1Gi"})

    assert (4250, 3 * GIB) == (found.milli_cpu, found.memory_bytes)
    assert 5 == found.cpus(1000)


def test_what_is_only_limited_is_requested_at_its_limit() -> None:
    found = demand.of(
        [Resources({"cpu": "1"}, {"cpu": "4", "memory": "2Gi", "nvidia.com/gpu": "2"})]
    )

    assert (1000, 2 * GIB, {"nvidia.com/gpu": 2}) == (
        found.milli_cpu,
        found.memory_bytes,
        found.extended,
    )


@pytest.mark.parametrize(
    ("pod_level", "milli_cpu", "gib"),
    [
        pytest.param(Resources({"cpu": "8", "memory": "6Gi"}), 8000, 6, id="replaces the sum"),
        pytest.param(Resources({"memory": "6Gi"}), 2000, 6, id="each resource by itself"),
        pytest.param(Resources({}, {"cpu": "8"}), 2000, 1, id="a limit does not outweigh requests"),
        pytest.param(Resources(), 2000, 1, id="empty changes nothing"),
    ],
)
def test_pod_level_requests_replace_the_containers(
    pod_level: Resources, milli_cpu: int, gib: int
) -> None:
    found = demand.of([needs("2", "1Gi")], pod_resources=pod_level)

    assert (milli_cpu, gib * GIB) == (found.milli_cpu, found.memory_bytes)


def test_pod_level_limits_stand_in_where_nobody_requests_anything() -> None:
    found = demand.of([needs()], pod_resources=Resources({}, {"cpu": "3"}))

    assert 3000 == found.milli_cpu


def test_pod_level_does_not_know_devices() -> None:
    pod_level = Resources({"nvidia.com/gpu": "8", "hugepages-2Mi": "4Mi"})
    found = demand.of([needs(**{"nvidia.com/gpu": "1"})], pod_resources=pod_level)

    assert {"nvidia.com/gpu": 1, "hugepages-2Mi": 4 * 2**20} == found.extended


def test_overhead_is_added_to_pod_level_requests() -> None:
    found = demand.of([needs("1")], (), {"cpu": "500m"}, Resources({"cpu": "2"}))

    assert 2500 == found.milli_cpu


def test_a_pod_that_asks_for_nothing_still_asks_slurm_for_something() -> None:
    assert Demand(milli_cpu=0, memory_bytes=0) == demand.of([needs()])
    assert 1 == demand.of([needs()]).cpus(1000) == demand.of([needs()]).cpus(100)


@pytest.mark.parametrize(
    ("cpu", "memory", "cpus", "memory_mib"),
    [("1m", "1", 1, 1), ("1001m", "1048577", 2, 2), ("999m", "512Ki", 1, 1)],
)
def test_slurm_is_asked_for_whole_cpus_and_mebibytes(
    cpu: str, memory: str, cpus: int, memory_mib: int
) -> None:
    found = demand.of([needs(cpu, memory)])

    assert (cpus, memory_mib) == (found.cpus(1000), found.memory_mib)


def test_fractions_are_summed_before_they_are_rounded() -> None:
    found = demand.of([needs("0.1m"), needs("0.1m"), needs("500m"), needs("499.8m")])

    assert (1000, 1) == (found.milli_cpu, found.cpus(1000))


def test_other_resources_keep_their_names_and_zeros_are_none() -> None:
    found = demand.of(
        [needs(**{"example.com/fpga": "2", "amd.com/gpu": "0", "ephemeral-storage": "1k"})]
    )

    assert {"example.com/fpga": 2} == found.extended
    assert 1000 == found.ephemeral_storage_bytes


def test_a_bad_quantity_is_told() -> None:
    with pytest.raises(ValueError, match="found 'lots'"):
        demand.of([needs("lots")])


@pytest.mark.parametrize(
    ("containers", "whole_pod", "unlimited"),
    [
        pytest.param([Resources()], None, ("cpu", "memory", "ephemeral-storage"), id="none"),
        pytest.param(
            [Resources({"cpu": "1", "memory": "1Gi"}, {"cpu": "1000m", "memory": "2Gi"})],
            None,
            ("memory", "ephemeral-storage"),
            id="more-than-requested",
        ),
        pytest.param(
            [Resources({}, {"cpu": "1", "memory": "1Gi"}), Resources({}, {"cpu": "1"})],
            None,
            ("memory", "ephemeral-storage"),
            id="one-of-two",
        ),
        pytest.param(
            [Resources(), Resources()],
            Resources({}, {"cpu": "1", "memory": "1Gi"}),
            ("ephemeral-storage",),
            id="the-whole-pod",
        ),
    ],
)
def test_what_has_no_limit_may_use_more_than_it_requests(
    containers: list[Resources], whole_pod: Resources | None, unlimited: tuple[str, ...]
) -> None:
    assert unlimited == demand.of(containers, pod_resources=whole_pod).unlimited
    assert unlimited == demand.of([], containers, pod_resources=whole_pod).unlimited


def test_total_adds_up_what_pods_need_together() -> None:
    one = demand.of([needs("500m", "1Mi", **{"nvidia.com/gpu": "1"})])
    two = demand.of([needs("600m", **{"nvidia.com/gpu": "2", "example.com/fpga": "1"})])

    expected = Demand(
        milli_cpu=1100,
        memory_bytes=2**20,
        extended={"nvidia.com/gpu": 3, "example.com/fpga": 1},
        pods=2,
    )

    assert expected == demand.total([one, two])
    assert 0 == demand.total([]).pods


def test_devices_become_gres_by_the_administrators_mapping() -> None:
    mapping = {"nvidia.com/gpu": "gpu", "example.com/a100": "gpu:a100", "example.com/spare": "gpu"}
    extended = {"nvidia.com/gpu": 2, "example.com/a100": 4, "example.com/spare": 1, "other": 3}

    assert {"gpu": 3, "gpu:a100": 4} == demand.gres(extended, mapping)


AMOUNTS = st.integers(0, 50)
CONTAINERS = st.lists(AMOUNTS, min_size=1, max_size=5)
INIT_CONTAINERS = st.lists(st.tuples(AMOUNTS, st.booleans()), max_size=6)


@given(CONTAINERS, INIT_CONTAINERS, AMOUNTS)
def test_demand_is_the_most_that_runs_at_any_moment(
    containers: list[int], init_containers: list[tuple[int, bool]], overhead: int
) -> None:
    """Start the pod step by step, as the kubelet does, and look at what runs."""
    moments: list[int] = []
    running_sidecars = 0
    for amount, is_sidecar in init_containers:
        moments.append(running_sidecars + amount)
        running_sidecars += amount if is_sidecar else 0
    moments.append(running_sidecars + sum(containers))

    found = demand.of(
        [needs(f"{amount}m") for amount in containers],
        [
            needs(f"{amount}m")._replace(sidecar=is_sidecar)
            for amount, is_sidecar in init_containers
        ],
        {"cpu": f"{overhead}m"},
    )

    assert max(moments) + overhead == found.milli_cpu


@given(st.dictionaries(st.sampled_from(["cpu", "memory", "x/y"]), st.integers(0, 10**6)))
def test_slurms_share_covers_kubernetes_own(amounts: dict[str, int]) -> None:
    found = demand.from_amounts({name: Decimal(amount) for name, amount in amounts.items()})

    assert found.cpus(1000) * 1000 >= found.milli_cpu
    assert found.memory_mib * 2**20 >= found.memory_bytes
