"""One CPU of Slurm as a part of a real one (setting `slurm.milli_cpu_per_cpu`): small pods take small parts."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.domain.diagnosis import overview
from bridge.domain.model import demand
from bridge.domain.nodes import fillers, spec
from bridge.domain.request import build, candidates
from bridge.domain.request.overrides import Overrides
from bridge.domain.request.permit import Permit
from bridge.settings import request_defaults
from bridge.settings.schema import Settings
from slurmruntime.values import names, quantities
from slurmruntime.values.faults import Refusal
from tests.make import placing
from tests.make.registration import NO_DAEMONS, PUBLISHING

UNITS = (1000, 500, 250, 200, 100, 50)
FINE = replace(PUBLISHING, milli_per_cpu=100)
NODE = placing.kube_node(cpus=8, gib=32)


def cpus(
    cpu: str, milli_per_cpu: int = 1000, asked: str = "", *, defaults: build.Defaults | None = None
) -> int:
    """Return the CPUs of a pod's placeholder."""
    defaults = defaults or build.Defaults(cluster=placing.CLUSTER, milli_per_cpu=milli_per_cpu)
    in_slurm = placing.slurm_node(cpus=8 * quantities.MILLI // defaults.milli_per_cpu)
    pool = candidates.pool([NODE], [in_slurm], placing.CLUSTER)
    overrides = Overrides(
        milli_cpu_per_task=quantities.milli(quantities.parse(asked)) if asked else None
    )
    pod = placing.pod(demand=placing.demands(cpu))
    permit = Permit(requester="r", rule="", user="u", group="g")
    return build.placeholder(pod, overrides, defaults, pool, permit=permit).cpus_per_task


@pytest.mark.parametrize(
    ("cpu", "asked", "expected"),
    [
        ("100m", "", 1),
        ("101m", "", 2),
        ("1", "", 10),
        ("0", "", 10),
        ("100m", "1500m", 15),
        ("100m", "2", 20),
    ],
)
def test_a_placeholder_has_as_many_parts_as_the_pod_takes(
    cpu: str, asked: str, expected: int
) -> None:
    assert expected == cpus(cpu, 100, asked)


def test_a_pod_that_requests_nothing_takes_as_little_as_the_administrator_says() -> None:
    defaults = request_defaults.of(
        Settings.model_validate(
            {"slurm": {"milli_cpu_per_cpu": 100}, "placement": {"default_cpus": 0.15}}
        ),
        placing.CLUSTER,
    )

    assert 2 == cpus("0", defaults=defaults)


def test_fewer_than_the_pod_takes_are_refused() -> None:
    with pytest.raises(Refusal, match=r"at least the 1500m CPUs .* found 1$"):
        cpus("1500m", 100, "1")


@given(
    st.lists(st.integers(1, 4000), max_size=40),
    st.lists(st.integers(0, 4000), max_size=3),
    st.sampled_from(UNITS),
)
def test_what_fits_in_slurm_fits_on_the_node(
    pods: list[int], daemons: list[int], milli_per_cpu: int
) -> None:
    """The first promise: Slurm counts no pod for less, and the node for no more, than Kubernetes does."""
    beside = demand.total(placing.demands(f"{daemon}m") for daemon in daemons)
    publishing = replace(PUBLISHING, milli_per_cpu=milli_per_cpu)
    offered = spec.spec(NODE, beside, publishing).cpus
    taken = [cpus(f"{pod}m", milli_per_cpu) for pod in pods]
    while sum(taken) > offered:
        taken.pop()

    assert sum(pods[: len(taken)]) + beside.milli_cpu <= max(8000, beside.milli_cpu)


def test_fillers_hold_as_many_parts_as_others_take() -> None:
    others = demand.total([placing.demands("250m", "1Mi")])
    slurm_node = placing.slurm_node(cpus=80, offered_cpus=80, offered_memory_mib=1024)

    assert 3 == fillers.wanted(NODE, others, slurm_node, FINE).cpus
    assert not fillers.wanted(NODE, NO_DAEMONS, slurm_node, FINE).cpus


def test_whoever_counts_real_cpus_is_refused() -> None:
    hybrid = replace(NODE, labels={names.HYBRID_NODE_LABEL: "true"})
    threaded = replace(NODE, annotations={names.THREADS_ANNOTATION: "2"})

    assert (f"metadata.labels[{names.HYBRID_NODE_LABEL}]",) == tuple(
        fault.path for fault in spec.faults(hybrid, FINE)
    )
    assert (f"metadata.annotations[{names.THREADS_ANNOTATION}]",) == tuple(
        fault.path for fault in spec.faults(threaded, FINE)
    )
    for node in (hybrid, threaded):
        assert () == spec.faults(node, PUBLISHING)
    assert () == spec.faults(NODE, FINE)


def test_both_sides_of_the_overview_count_alike() -> None:
    slurm_node = placing.slurm_node(
        cpus=80, memory_mib=1024, states=frozenset({"IDLE", "EXTERNAL"})
    )
    (row,) = overview.rows([NODE], [slurm_node], milli_per_cpu=100)

    assert (80, 80, "") == (row.cpus, row.slurm_cpus, row.mismatch)
    (row,) = overview.rows([NODE], [slurm_node])
    assert "more CPUs" in row.mismatch
