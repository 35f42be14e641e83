"""Deleted objects of the control plane stay in force while something lives that needs them, whatever fails meanwhile."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmoperator.daemons.leaving import (
    DeletionFacts,
    Neighbour,
    dependents,
    explain,
    why_waiting,
)
from slurmoperator.daemons.part import FINALIZER
from slurmoperator.objects.labels import MANAGER
from slurmoperator.rendering.site import NamespaceScope
from slurmruntime.crd.metadata import OwnerReference
from slurmruntime.kube.apply.ownership import FieldOwner, OwnershipMetadata
from tests.make.apiserver import Manifest
from tests.make.trouble import Dead, Fault, Trouble, dying, first_and_last
from tests.slurmoperator.daemons.peers import PASSWORD, AppliedTo, Leaders, controller, part
from tests.slurmoperator.examples import BY_NAME, path
from tests.virtual_time import VirtualClock, run

pytestmark = pytest.mark.slow

CONTROLLER = Neighbour(kind="Controller", name="site", accounting="site")
REST_API = Neighbour(kind="RestApi", name="site", controller="site")
NODE_SET = Neighbour(kind="NodeSet", name="cpu", controller="site")
LOGIN_SET = Neighbour(kind="LoginSet", name="login", controller="site")
ODD = Neighbour(kind="NodeSet", name="odd", is_unreadable=True)


def other(kind: str, **changes: object) -> Neighbour:
    return Neighbour(kind=kind, name="other", **changes)  # type: ignore[arg-type]  # what a test changes


@pytest.mark.parametrize(
    ("kind", "around", "expected"),
    [
        ("Controller", [CONTROLLER], []),
        ("Controller", [CONTROLLER, REST_API, NODE_SET, LOGIN_SET], [REST_API, NODE_SET, LOGIN_SET]),
        ("Controller", [other("NodeSet", controller="another"), other("Controller")], []),
        ("Controller", [ODD], [ODD]),
        ("RestApi", [REST_API, LOGIN_SET, CONTROLLER], []),
        ("RestApi", [REST_API, NODE_SET], [NODE_SET]),
        ("RestApi", [REST_API, ODD], [ODD]),
        ("RestApi", [REST_API, other("NodeSet", controller="another")], []),
        ("RestApi", [REST_API, NODE_SET, other("RestApi", controller="site")], []),
        ("RestApi", [REST_API, NODE_SET, other("RestApi", controller="another")], [NODE_SET]),
        ("RestApi", [REST_API, NODE_SET, other("RestApi", controller="site", replicas=0)], [NODE_SET]),
        ("RestApi", [REST_API, NODE_SET, other("RestApi", controller="site", is_deleting=True)], [NODE_SET]),
        ("RestApi", [Neighbour(kind="RestApi", name="site", controller="site", replicas=0), NODE_SET], []),
        ("RestApi", [Neighbour(kind="RestApi", name="site", is_unreadable=True), NODE_SET], []),
        ("Accounting", [CONTROLLER, NODE_SET], [CONTROLLER]),
        ("Accounting", [other("Controller", accounting="another"), NODE_SET], []),
    ],
)  # fmt: skip
def test_what_lives_keeps_what_it_needs(
    kind: str, around: list[Neighbour], expected: list[Neighbour]
) -> None:
    assert list(expected) == list(dependents(kind, "site", around))


def test_a_person_is_told_what_to_delete() -> None:
    going = other("NodeSet", controller="site", is_deleting=True)
    assert explain([going]).endswith("that need it are gone: NodeSet other")
    assert explain([going, LOGIN_SET]).endswith(
        "NodeSet other, LoginSet login; delete LoginSet login"
    )


names = st.sampled_from(["site", "other", ""])
neighbours = st.builds(
    Neighbour,
    kind=st.sampled_from(["Controller", "RestApi", "LoginSet", "NodeSet", "?"]),
    name=names,
    is_deleting=st.booleans(),
    is_unreadable=st.booleans(),
    controller=names,
    accounting=names,
    replicas=st.integers(-1, 2),
)
children = st.builds(
    OwnershipMetadata,
    name=names,
    owner_references=st.lists(
        st.builds(OwnerReference, uid=st.sampled_from(["uid", "another"])), max_size=2
    ).map(tuple),
    managed_fields=st.lists(
        st.builds(
            FieldOwner, manager=st.sampled_from([MANAGER, "kubectl"]), operation=st.just("Apply")
        ),
        max_size=2,
    ).map(tuple),
)
leaving_facts = st.builds(
    DeletionFacts,
    kind=st.sampled_from(["Controller", "Accounting", "RestApi", "LoginSet", "Token"]),
    name=names,
    uid=st.just("uid"),
    is_orphaning=st.booleans(),
    neighbours=st.lists(neighbours, max_size=4).map(tuple),
    children=st.lists(children, max_size=3).map(tuple),
)


@given(leaving_facts)
def test_whatever_was_read_nothing_goes_while_somebody_may_need_it(facts: DeletionFacts) -> None:
    waits = why_waiting(facts)

    owned = any(owner.uid == "uid" for child in facts.children for owner in child.owner_references)
    if facts.is_orphaning:
        assert not waits
    if facts.is_orphaning or (facts.children and not owned):
        return  # what was made for it stays
    needed = [*dependents(facts.kind, facts.name, facts.neighbours)]
    assert bool(needed) is bool(waits)
    if facts.kind == "Controller" and any(
        other.is_unreadable and other.kind == "NodeSet" for other in facts.neighbours
    ):
        assert waits, "a NodeSet that cannot be read may be one of its own"


def workers(name: str = "site") -> Manifest:
    """A NodeSet that needs no gres.conf."""
    return part("NodeSet", name, extraConf=..., ssh=...)


def whole_slurm(api: AppliedTo) -> None:
    for each in (
        PASSWORD,
        part("Accounting"),
        part("Controller", prologScriptRefs=...),
        part("RestApi"),
        workers(),
    ):
        api.put(each)


def is_there(leaders: Leaders, kind: str) -> bool:
    return "site" in leaders.api.of(kind)


def test_a_slurm_that_is_deleted_at_once_goes_after_its_workers_in_the_right_order() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        whole_slurm(leaders.api)
        await leaders.lead()
        for kind in ("Accounting", "RestApi", "Controller"):
            leaders.api.leave(kind)
        leaders.api.leave("NodeSet", "site", "slurm-bridge.dev/workers")
        leaders.api.change("StatefulSet", "site-controller", replicas=0)
        await leaders.lead()
        assert leaders.api.condition("Controller", "Ready") == (
            "False",
            "Deleting",
            "being deleted; it stays in force until the objects that need it are gone: NodeSet site, RestApi site",
        )
        for kind, needs in (("RestApi", "NodeSet site"), ("Accounting", "Controller site")):
            assert leaders.api.condition(kind, "Ready")[2].endswith(
                f"that need it are gone: {needs}"
            )

        leaders.api.remove("NodeSet", "site")
        await leaders.lead()
        assert not any(is_there(leaders, each) for each in ("Controller", "RestApi", "Accounting"))
        order = [write for write in leaders.trouble.writes if "status" not in write][-3:]
        assert [each.rsplit("/", 2)[1] for each in order] == [
            "restapis",
            "controllers",
            "accountings",
        ]

    run(main)


def test_what_a_deleted_controller_has_is_still_set_back() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        leaders.api.put(controller())
        leaders.api.put(workers())
        await leaders.lead()
        leaders.api.leave("Controller")
        await leaders.lead()
        leaders.api.remove("StatefulSet", "site-controller")
        await leaders.lead()
        assert ("StatefulSet", "site-controller") in leaders.api.made()

    run(main)


def test_a_nodeset_that_no_watch_has_told_keeps_its_slurmctld() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        leaders.api.put(controller())
        await leaders.lead()
        unseen = workers("unseen")
        leaders.api.leave("Controller")
        leaders.api.objects[path(BY_NAME["NodeSet"], "slurm", "unseen")] = unseen
        await leaders.lead()
        assert "NodeSet unseen" in leaders.api.condition("Controller", "Ready")[2]

    run(main)


@pytest.mark.parametrize("finalizers", [("orphan",), ()])
def test_what_nothing_needs_goes_at_once(finalizers: tuple[str, ...]) -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        leaders.api.put(controller())
        if finalizers:
            leaders.api.put(workers())
        await leaders.lead()
        leaders.api.leave("Controller", "site", *finalizers)
        await leaders.lead()
        left = leaders.api.of("Controller").get("site", {}).get("metadata", {}).get("finalizers")
        assert ([*finalizers] or None) == left
        created = leaders.api.of("StatefulSet")["site-controller"]["metadata"]
        is_orphan = "ownerReferences" not in created  # though no garbage collector was here
        assert bool(finalizers) is is_orphan

    run(main)


def without_owner(api: AppliedTo, *but: str) -> None:
    """What the garbage collector does to all that was made, but for some kinds, after `--cascade=orphan`."""
    for manifest in list(api.objects.values()):
        owners = manifest["metadata"].get("ownerReferences", ())
        if manifest["kind"] not in but and any(owner["kind"] == "Controller" for owner in owners):
            left = copy.deepcopy(manifest)
            del left["metadata"]["ownerReferences"]
            api.put(left)


@pytest.mark.parametrize("still_owned", ["", "StatefulSet"])
def test_what_was_orphaned_before_anybody_looked_is_not_taken_back(still_owned: str) -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        leaders.api.put(controller())
        leaders.api.put(workers())
        await leaders.lead()
        leaders.api.leave("Controller")
        without_owner(leaders.api, still_owned)
        await leaders.lead()
        assert bool(still_owned) is is_there(leaders, "Controller")
        made = leaders.api.of("StatefulSet")["site-controller"]["metadata"]
        assert bool(still_owned) is ("ownerReferences" in made)

    run(main)


@pytest.mark.parametrize("has_workers", [False, True])
def test_where_nothing_is_served_any_more_it_goes_after_its_workers_all_the_same(
    *, has_workers: bool
) -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        leaders.api.put(controller())
        if has_workers:
            leaders.api.put(workers())
        await leaders.lead()
        leaders.served = NamespaceScope(frozenset({"another"}))
        leaders.api.leave("Controller")
        await leaders.lead()
        assert has_workers is is_there(leaders, "Controller")
        if has_workers:
            assert "NodeSet site" in leaders.api.condition("Controller", "Ready")[2]
            leaders.api.remove("NodeSet", "site")
            await leaders.lead()
            assert not is_there(leaders, "Controller")

    run(main)


async def whole_life(leaders: Leaders) -> None:
    """Made, deleted while it is needed, and gone; a leader that died is followed by another one."""

    async def lead() -> None:
        try:
            await leaders.lead()
        except* Dead:
            await leaders.lead()

    whole_slurm(leaders.api)
    await lead()
    assert [FINALIZER] == leaders.api.of("Controller")["site"]["metadata"]["finalizers"]
    for kind in ("Accounting", "RestApi", "Controller"):
        leaders.api.leave(kind)
    await lead()
    for kind in ("Accounting", "RestApi", "Controller"):
        assert "Deleting" == leaders.api.condition(kind, "Ready")[1]
    leaders.api.remove("NodeSet", "site")
    await lead()
    assert not any(is_there(leaders, each) for each in ("Controller", "RestApi", "Accounting"))


def of_leaving(writes: list[str]) -> list[int]:
    """The numbers of the writes to the objects themselves; those of what is made for them fail elsewhere."""
    return [at for at, each in enumerate(writes, 1) if "slinky.slurm.net" in each]


@pytest.mark.parametrize("fault", Fault)
def test_whatever_write_fails_each_goes_only_when_it_is_not_needed(fault: Fault) -> None:
    async def main(clock: VirtualClock) -> None:
        calm = Leaders(clock)
        await whole_life(calm)
        for at in of_leaving(calm.trouble.writes):
            await whole_life(Leaders(clock, Trouble(fault, at=at)))

    run(main)


def test_whatever_read_fails_each_goes_only_when_it_is_not_needed() -> None:
    async def main(clock: VirtualClock) -> None:
        calm = Leaders(clock)
        await whole_life(calm)
        for at in first_and_last(calm.trouble.reads):
            await whole_life(Leaders(clock, Trouble(at_read=at)))

    run(main)


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
def test_a_leader_may_die_at_any_write_of_a_whole_life(*, is_done: bool) -> None:
    async def main(clock: VirtualClock) -> None:
        calm = Leaders(clock)
        await whole_life(calm)
        for at in of_leaving(calm.trouble.writes):
            leaders = Leaders(clock)
            died = dying(leaders.trouble, at, is_done=is_done)
            await whole_life(leaders)
            assert died, "there is a write at which it did not die"

    run(main)
