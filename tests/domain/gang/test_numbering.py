"""Ranks side by side on the nodes of one switch, and no rank that moves once a member has its place."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.domain.gang import numbering, seating
from bridge.domain.lifecycle.actions import Assign, Place
from bridge.domain.model import grant
from bridge.domain.model.allocation import Component, TaskShare
from bridge.domain.model.grant import Grant
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.pods import Pod
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode, SlurmNode
from tests.make import gangs
from tests.make.gangs import N1, N2, A, B, C

GRANT = Grant(
    name="ring", user="alice", group="team", memory_mib_per_cpu=64, layout="n1*2,n2", started_s=1
)
LEAVES = ("t:s0", "t:s1", "t:left:s0", "t:left:s1", "t:right:s0")
PLACES = st.sampled_from((*LEAVES, "t:left", "", ":,t"))


def running(counts: Sequence[int], *pods: Pod) -> SlurmJob:
    """A placeholder with so many slots on nodes n0, n1 …, which says what Slurm granted."""
    shares = tuple(
        TaskShare(node=SlurmNode(f"n{number}"), tasks=count) for number, count in enumerate(counts)
    )
    slots = [share.node for share in shares for _ in range(share.tasks)]
    return replace(
        gangs.job(JobPhase.RUNNING, *pods, tasks=sum(counts)),
        nodes=tuple(share.node for share in shares),
        shares=shares,
        grant=replace(GRANT, layout=grant.layout(slots)),
    )


def placed(job: SlurmJob, rank: int) -> Pod:
    """A member as the pin leaves it: with what its placeholder was granted."""
    assert job.grant is not None
    pod = gangs.placed(f"m-{rank}", rank)
    text = grant.encode(job.identity, job.grant)
    return replace(pod, annotations={**pod.annotations, names.GRANT_ANNOTATION: text})


def on(places: Mapping[str, str]) -> numbering.Topology:
    return lambda node: places.get(node, "")


# --- side by side ----------------------------------------------------------------------------------------------------


def test_nodes_of_one_switch_are_neighbours() -> None:
    places = {"n0": "t:s0", "n1": "t:s1", "n2": "t:s0", "n3": "t:s1"}
    job = numbering.numbered(running([1, 2, 1, 1]), (), on(places))

    assert ("n0", "n2", "n1", "n3") == job.nodes == tuple(share.node for share in job.shares)
    assert ("n0", "n2", "n1", "n1", "n3") == seating.slots(job)
    assert job.grant is not None
    assert "n0,n2,n1*2,n3" == job.grant.layout


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        (("t:s0", "", "t:s0"), "n0 n2 n1"),
        (("", "", ""), "n0 n1 n2"),
        (("t:s1", "t:s0", "t:s1"), "n0 n2 n1"),
        (("t:root:s0", "t:root:s1", "t:root:s0"), "n0 n2 n1"),
        (("t:left:s0", "t:right:s0", "t:left:s1"), "n0 n2 n1"),
        (("t:s0,b:b0", "t:s0,b:b1", "t:s0,b:b0"), "n0 n2 n1"),
        (("t:s0,b:b0", "b:b0,t:s1", "b:b1,t:s0"), "n0 n2 n1"),
        (("t:s0", "b:b0", "t:s0"), "n0 n2 n1"),
        ((" t:s0 , ", "t", "t:s0"), "n0 n2 n1"),
        (("t:s0," + "x" * 5000, "t:s1", "t:s0"), "n0 n1 n2"),
    ],
    ids=[
        "one in no topology",
        "none in any",
        "as they come, not by name",
        "with the switch above",
        "neighbouring switches",
        "blocks of one switch",
        "what is named first counts first",
        "in different topologies",
        "blanks, and a topology without a switch",
        "a text that is far too long",
    ],
)
def test_the_order_of_three_nodes(places: Sequence[str], expected: str) -> None:
    job = running([1, 1, 1])
    found = numbering.numbered(job, (), on(dict[str, str](zip(job.nodes, places, strict=True))))
    assert expected == " ".join(found.nodes)


@given(st.lists(st.tuples(st.integers(1, 4), PLACES), min_size=1, max_size=12))
def test_every_node_keeps_its_slots_and_no_switch_is_torn(nodes: list[tuple[int, str]]) -> None:
    job = running([count for count, _ in nodes])
    places = {f"n{number}": place for number, (_, place) in enumerate(nodes)}
    found = numbering.numbered(job, (), on(places))

    assert Counter(seating.slots(job)) == Counter(seating.slots(found))
    assert found.nodes == tuple(node for node, _ in itertools.groupby(seating.slots(found)))
    for switch in (*LEAVES, "t:left", "t:right"):
        is_below = [f"{places[node]}:".startswith(f"{switch}:") for node in found.nodes]
        assert [each for each, _ in itertools.groupby(is_below)].count(True) <= 1, switch
    assert found == numbering.numbered(found, (), on(places)), "numbered twice it is another order"


@given(st.lists(st.integers(1, 4), min_size=1, max_size=12))
def test_without_a_topology_it_is_slurms_order(counts: list[int]) -> None:
    job = running(counts)
    assert job == numbering.numbered(job, (), gangs.nowhere)


def test_components_are_numbered_one_by_one() -> None:
    """The launcher's node comes first although it is on the workers' switch."""
    launcher, workers = running([1]), running([1, 1, 1, 1])
    assert launcher.grant is not None
    assert workers.grant is not None
    parts = (
        Component(tasks=1, shares=(TaskShare(node=SlurmNode("n9"), tasks=1),)),
        Component(tasks=4, shares=workers.shares),
    )
    granted = replace(launcher.grant, layout="n9", also=(workers.grant,))
    job = replace(
        launcher,
        nodes=(SlurmNode("n9"), *workers.nodes),
        tasks=5,
        shares=(),
        parts=parts,
        grant=granted,
    )
    places = {"n9": "t:s1", "n0": "t:s0", "n1": "t:s1", "n2": "t:s0", "n3": "t:s1"}
    found = numbering.numbered(job, (), on(places))

    assert ("n9", "n0", "n2", "n1", "n3") == seating.slots(found) == found.nodes
    assert found.grant is not None
    assert ["n9", "n0,n2,n1,n3"] == [
        found.grant.layout,
        *(each.layout for each in found.grant.also),
    ]
    again = numbering.numbered(job, [placed(found, 0)], gangs.nowhere)
    assert seating.slots(found) == seating.slots(again)


def test_more_room_than_tasks_is_given_as_in_slurms_order() -> None:
    """What each task has was computed so (`bridge.slurm.allocated.granted`)."""
    job = replace(running([2, 4, 4]), tasks=6, shares=running([4, 4, 4]).shares)
    found = numbering.numbered(job, (), on({"n0": "t:s1", "n1": "t:s0", "n2": "t:s1"}))

    assert Counter(seating.slots(job)) == Counter(seating.slots(found))
    assert ("n0", "n2", "n1") == found.nodes


def test_what_has_no_room_is_left_as_it_is() -> None:
    job = replace(running([1, 1]), tasks=5)
    assert job is numbering.numbered(job, (), on({"n0": "t:s0"}))


# --- no rank moves ---------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(1, 4), PLACES, PLACES), min_size=1, max_size=8), st.data())
def test_whatever_becomes_of_the_topology_no_rank_moves(
    nodes: list[tuple[int, str, str]], data: st.DataObject
) -> None:
    job = running([count for count, _, _ in nodes])
    before = on({f"n{number}": place for number, (_, place, _) in enumerate(nodes)})
    after = on({f"n{number}": place for number, (_, _, place) in enumerate(nodes)})
    first = numbering.numbered(job, (), before)
    ranks = data.draw(st.sets(st.integers(0, job.tasks - 1), min_size=1))

    assert first == numbering.numbered(job, [placed(first, rank) for rank in ranks], after)


def test_a_gang_that_an_earlier_release_placed_keeps_slurms_order() -> None:
    job = running([1, 1, 1])
    there = [placed(job, 0)]
    places = {"n0": "t:s0", "n1": "t:s1", "n2": "t:s0"}
    assert job == numbering.numbered(job, there, on(places))


@pytest.mark.parametrize("is_recorded", [True, False], ids=["an unreadable record", "none"])
def test_where_nothing_is_recorded_it_is_slurms_order(is_recorded: bool) -> None:
    """Before anybody is placed, too: else the next look, which finds members without a record, would differ."""
    places = on({"n0": "t:s0", "n1": "t:s1", "n2": "t:s0"})
    job = running([1, 1, 1])
    notes = {names.GRANT_ANNOTATION: "{"} if is_recorded else {}
    pod = gangs.placed("m-0", 0)
    member = replace(pod, annotations={**pod.annotations, **notes})

    assert job.nodes == numbering.numbered(job, [member], places).nodes
    assert job.nodes == numbering.numbered(replace(job, grant=None), (), places).nodes


def test_a_restored_placeholder_whose_nodes_slurm_lists_otherwise_keeps_the_ranks() -> None:
    lost = numbering.numbered(running([1, 2, 1]), (), on({"n0": "t:s0", "n2": "t:s0"}))
    new = replace(
        running([1, 2, 1]), nodes=tuple(reversed(lost.nodes)), shares=tuple(reversed(lost.shares))
    )
    found = numbering.numbered(new, [placed(lost, 3)], gangs.nowhere)
    assert ("n0", "n2", "n1", "n1") == seating.slots(lost) == seating.slots(found)


def test_the_record_of_more_nodes_than_there_are_is_not_believed() -> None:
    whole = running([1, 1, 1])
    rest = replace(running([1, 1]), grant=None)
    assert rest.nodes == numbering.numbered(rest, [placed(whole, 2)], gangs.nowhere).nodes


# --- what the gang makes of it ---------------------------------------------------------------------------------------


def assigned(*pods: Pod, places: Mapping[str, str]) -> dict[str, Assign]:
    job = replace(
        gangs.job(JobPhase.RUNNING, A, B, C),
        nodes=(N2, N1, SlurmNode("n3")),
        shares=tuple(TaskShare(node=node, tasks=1) for node in (N2, N1, SlurmNode("n3"))),
        grant=replace(GRANT, layout="n2,n1,n3"),
    )
    found = gangs.decided(list(pods), job, topology=on(places))
    return {
        name: action
        for name, actions in found.items()
        for action in actions
        if isinstance(action, Assign)
    }


def test_members_are_assigned_along_the_switches_and_carry_that_order() -> None:
    found = assigned(A, B, C, places={"n1": "t:s1", "n2": "t:s0", "n3": "t:s0"})

    assert ["n2", "n3", "n1"] == [found[name].slurm_node for name in "abc"]
    for action in found.values():
        recorded = grant.decode(action.grant)
        assert recorded is not None
        assert "n2,n3,n1" == recorded[1].layout
        assert action.place is not None
        assert (KubeNode("k2"), KubeNode("k1")) == action.place.nodelist


def test_after_a_crash_in_the_middle_the_rest_follow_although_the_topology_changed() -> None:
    before = assigned(A, B, C, places={"n1": "t:s1", "n2": "t:s0", "n3": "t:s0"})
    first = gangs.placed("a", 0)
    notes = {**first.annotations, names.GRANT_ANNOTATION: before["a"].grant}
    after = assigned(replace(first, annotations=notes), B, C, places={"n1": "t:s0", "n2": "t:s0"})

    assert {"b", "c"} == after.keys()
    for name, action in after.items():
        assert before[name].slurm_node == action.slurm_node
        assert before[name].place == action.place


def test_a_members_place_on_its_node_is_told_with_it() -> None:
    found = gangs.decided([A, B, C], gangs.job(JobPhase.RUNNING, A, B, C))
    places = [
        seating.place(action)
        for actions in found.values()
        for action in actions
        if isinstance(action, Assign)
    ]
    assert [{"place": 0, "of": 2}, {"place": 1, "of": 2}, {"place": 0, "of": 1}] == places


def test_a_pod_without_a_gang_has_all_that_its_job_has_there() -> None:
    action = Assign(
        job_id=gangs.job(JobPhase.RUNNING).id,
        sluid=None,
        slurm_node=N1,
        kube_node=KubeNode("k1"),
        grant="",
    )
    assert {} == seating.place(action)
    whole = Place(workload=gangs.UID, rank=3, world_size=4, nodelist=())
    assert {"place": 0, "of": 1} == seating.place(replace(action, place=whole))


# --- members of a lost placeholder, of whom only some have adopted the new one ------------------------------------------


def test_a_place_in_the_lost_placeholder_is_taken_in_the_one_that_stands_in_for_it() -> None:
    """Else a newcomer would get the place of a sibling that has not adopted the new one yet."""
    job = running([1, 1, 1], A, B, C)
    stand_in = replace(job, identity=replace(job.identity, restores="6"))
    sized = {names.WORLD_SIZE_ANNOTATION: "3"}
    adopted, other = placed(job, 0), placed(job, 1)
    adopted = replace(adopted, annotations={**adopted.annotations, **sized})
    behind = replace(
        other,
        annotations={**other.annotations, **sized},
        labels={**other.labels, names.JOB_ID_LABEL: "6"},
    )
    group = gangs.wanted([C])
    assert group is not None

    (seat,) = seating.seats(stand_in, [adopted, behind, C], group).values()
    assert (2, "n2") == (seat.slot, seat.node)
