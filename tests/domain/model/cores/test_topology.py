"""Slurm's CPU numbers and the kernel's, on machines of several shapes."""

from collections.abc import Iterable

import pytest

from bridge.domain.model.cores import topology
from bridge.domain.model.cores.topology import Processor


def machine(*sockets: Iterable[tuple[int, ...]]) -> list[Processor]:
    """Build processors of sockets, each given by its cores."""
    return [
        Processor(
            cpu=cpu, core=frozenset(core), socket=frozenset(c for each in cores for c in each)
        )
        for cores in map(list, sockets)
        for core in cores
        for cpu in core
    ]


def test_threads_of_a_core_are_neighbours() -> None:
    """A socket of four cores whose second threads are numbered after all first ones."""
    found = machine([(0, 4), (1, 5), (2, 6), (3, 7)])

    assert (0, 4, 1, 5, 2, 6, 3, 7) == topology.in_order(found, [])


def test_cores_of_a_socket_are_neighbours() -> None:
    """Two sockets numbered in turn, two threads each: even processors are of the first."""
    found = machine([(0, 4), (2, 6)], [(1, 5), (3, 7)])

    assert (0, 4, 2, 6, 1, 5, 3, 7) == topology.in_order(found, [])


def test_cores_of_a_numa_node_are_neighbours() -> None:
    """One socket with two NUMA nodes, numbered in turn."""
    found = machine([(0,), (1,), (2,), (3,)])
    numa = [frozenset({0, 2}), frozenset({1, 3})]

    assert (0, 2, 1, 3) == topology.in_order(found, numa)


def test_two_jobs_of_whole_cores_share_no_core() -> None:
    """Slurm hands out CPUs 0-1 and 2-3 of a node with two threads per core."""
    order = topology.in_order(machine([(0, 2), (1, 3)]), [])

    assert frozenset({0, 2}) == topology.behind({0, 1}, order, range(4))
    assert frozenset({1, 3}) == topology.behind({2, 3}, order, range(4))


def test_processors_that_pods_may_not_use_are_not_counted() -> None:
    assert frozenset({3}) == topology.behind({1}, (0, 1, 2, 3), {2, 3})


@pytest.mark.parametrize("cpus", [{4}, {0, 4}, set()])
def test_a_machine_that_has_too_few_has_none(cpus: set[int]) -> None:
    assert topology.behind(cpus, (0, 1, 2, 3), range(4)) is None


def test_cores_are_numbered_through_sockets_and_threads() -> None:
    """Sockets=2 CoresPerSocket=4 ThreadsPerCore=2: core 1 of socket 1 is the sixth."""
    assert {0, 1, 10, 11} == topology.numbered({0: [0], 1: [1]}, 2, cores_per_socket=4)


def test_members_of_a_gang_get_parts_of_one_size() -> None:
    parts = [topology.portion({0, 1, 4, 5}, place=place, of=2) for place in range(2)]

    assert [{0, 1}, {4, 5}] == parts
    assert not topology.portion({0, 1, 2}, place=0, of=2)
    assert {3} == topology.portion({3})
