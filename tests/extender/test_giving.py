"""A device is given once, whatever our cache of claims shows."""

import asyncio
from dataclasses import replace

import pytest

from bridge.domain.model.claims import reservations
from bridge.reconcile.actuator import NotGiven
from extender.claims import giving
from slurmruntime.kube import errors
from slurmruntime.values import names
from tests.extender.giver import Stage, staged
from tests.make import placing
from tests.make.devices import claim, claiming
from tests.make.trouble import Fault, Trouble


def test_of_two_pods_at_the_same_moment_one_gets_the_device() -> None:
    async def both(stage: Stage) -> None:
        found = await asyncio.gather(
            stage.give("one", 1), stage.give("two", 2), return_exceptions=True
        )
        assert [None, NotGiven] == sorted(
            (each and type(each) for each in found), key=lambda each: each is not None
        )
        assert 1 == len(stage.given())

    staged(both, claim("one"), claim("two"))


def test_what_the_leader_before_gave_is_not_given_again() -> None:
    async def second(stage: Stage) -> None:
        with pytest.raises(NotGiven, match="still given to claim team-a/one"):
            await stage.give("two", 2)
        assert ["one"] == stage.given()

    staged(second, claim("one", given="gpu-0", to="one"), claim("two"))


@pytest.mark.attack(
    "keep another node's devices from its pods, by publishing devices of the same names in its pool, and having them given to a pod of one's own",
    "a claim on another node has other devices, whatever their names",
)
def test_a_device_of_the_same_name_on_another_node_is_in_nobodys_way() -> None:
    theirs = claim("theirs", given="gpu-0", to="theirs", node="s1")
    [term] = theirs["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    term["matchFields"][0]["values"] = ["s2"]

    async def first(stage: Stage) -> None:
        assert "s2" == stage.read("theirs").node
        await stage.give("one", 1)
        assert ["one", "theirs"] == sorted(stage.given())

    staged(first, claim("one"), theirs)


def test_an_odd_claim_hides_no_other() -> None:
    odd = claim("odd")
    odd["spec"]["devices"] = "many"

    async def second(stage: Stage) -> None:
        with pytest.raises(NotGiven, match="still given to claim team-a/one"):
            await stage.give("two", 2)

    staged(second, odd, claim("one", given="gpu-0", to="one"), claim("two"))


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_REPLY], ids=str)
def test_a_gift_without_an_answer_counts_until_it_can_no_longer_arrive(fault: Fault) -> None:
    async def second(stage: Stage) -> None:
        with pytest.raises(errors.Unavailable):
            await stage.give("one", 1)
        with pytest.raises(NotGiven, match="still given to claim team-a/one"):
            await stage.give("two", 2)
        await stage.give("one", 1)  # its own reservation is not in its way
        assert ["one"] == stage.given()

    # The finalizer is the first write.
    staged(second, claim("one"), claim("two"), trouble=Trouble(fault, at=2))


def test_a_gift_that_never_arrived_does_not_count_for_ever() -> None:
    async def later(stage: Stage) -> None:
        with pytest.raises(errors.Unavailable):
            await stage.give("one", 1)
        await stage.clock.sleep(reservations.LASTS_S)
        await stage.give("two", 2)
        assert ["two"] == stage.given()

    lost = Trouble(Fault.LOST_REQUEST, at=2)
    staged(later, claim("one"), claim("two"), trouble=lost)


@pytest.mark.parametrize("at", [1, 2])
def test_what_was_surely_not_given_is_free_at_once(
    at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy refuses the finalizer, or the gift."""
    monkeypatch.setattr("tests.make.apiserver._failure", _refusal)

    async def second(stage: Stage) -> None:
        with pytest.raises(errors.Forbidden):
            await stage.give("one", 1)
        await stage.give("two", 2)
        assert ["two"] == stage.given()

    staged(second, claim("one"), claim("two"), trouble=Trouble(at=at))


def _refusal(_fault: Fault, method: str, path: str) -> errors.KubeError:
    return errors.Forbidden(method, path, status=403)


def test_what_the_cache_shows_is_not_reserved_besides() -> None:
    """The claim is taken back later: its device must be free as soon as the cache shows that."""

    async def again(stage: Stage) -> None:
        await stage.give("one", 1)
        stage.everyone.put(stage.read("one"))
        del stage.api.of("ResourceClaim")["one"]["status"]
        stage.everyone.put(stage.read("one", version="later"))
        await stage.give("two", 2)
        assert ["two"] == stage.given()

    staged(again, claim("one"), claim("two"))


def test_what_was_given_without_an_answer_is_taken_back_though_no_cache_shows_it() -> None:
    async def back(stage: Stage) -> None:
        with pytest.raises(errors.Unavailable):
            await stage.give("one", 1)
        assert ["one"] == stage.given()
        await stage.devices.take_back(stage.pod("one"))
        assert [] == stage.given()
        await stage.give("two", 2)

    staged(back, claim("one"), claim("two"), trouble=Trouble(Fault.LOST_REPLY, at=2))


def test_each_claim_of_a_pod_is_taken_back_whatever_becomes_of_the_others() -> None:
    """One was deleted, one fails, one is another pod's."""
    has = {"given": "gpu-0", "to": "many"}
    there = [
        claim("a", **has),
        claim("b", **has),
        claim("c", given="gpu-0", to="one"),
        claim("d", **has),
    ]

    async def back(stage: Stage) -> None:
        for name in "abcd":
            stage.everyone.put(stage.read(name))
        stage.api.remove("ResourceClaim", "a")
        with pytest.raises(errors.Unavailable):
            await stage.devices.take_back(stage.pod("many"))
        assert ["b", "c"] == stage.given()

    staged(back, claiming("many", *"abcd"), *there, trouble=Trouble(at=1))


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ({names.HYBRID_NODE_LABEL: "true"}, f"{names.DEVICE_ORDER_LABEL}=by-name"),
        ({names.HYBRID_NODE_LABEL: "true", names.DEVICE_ORDER_LABEL: "by-name"}, ""),
    ],
)
def test_a_node_that_became_hybrid_meanwhile_gives_only_devices_whose_order_is_known(
    labels: dict[str, str], told: str
) -> None:
    """The job was submitted when another label was there."""

    async def one(stage: Stage) -> None:
        changed = replace(placing.kube_node("s1", labels=labels), resource_version="2")
        stage.kube_nodes.put(changed)
        if told:
            with pytest.raises(NotGiven, match=told):
                await stage.give("one", 1)
        else:
            await stage.give("one", 1)
        assert ([] if told else ["one"]) == stage.given()

    staged(one, claim("one"))


def test_a_pod_that_waits_for_its_nodes_slices_is_woken_when_they_are_back() -> None:
    """Each look without them makes the back-off longer; one that got its devices is left alone."""

    async def back(stage: Stage) -> None:
        slices = list(stage.slices.values())
        for published in slices:
            stage.slices.remove(published.name)
        with pytest.raises(NotGiven, match="ResourceSlices have 0"):
            await stage.give("one", 1)
        assert [] == stage.woken

        for published in slices:
            stage.slices.put(replace(published, name="elsewhere", node="s2"))
        assert [] == stage.woken
        for published in slices:
            stage.slices.put(replace(published, resource_version="3"))
        assert [stage.pod("one").uid] == stage.woken

        await stage.give("one", 1)
        for published in slices:
            stage.slices.put(replace(published, resource_version="4"))
        assert [stage.pod("one").uid] == stage.woken

    staged(back, claim("one"))


def test_pods_that_are_gone_take_no_room_from_those_that_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(giving, "_MOST_WAITING", 1)

    async def back(stage: Stage) -> None:
        (there,) = stage.slices.values()
        stage.slices.remove(there.name)
        for name, job in (("two", 1), ("one", 2)):
            with pytest.raises(NotGiven, match="ResourceSlices have 0"):
                await stage.give(name, job)

        stage.slices.put(replace(there, resource_version="3"))
        assert [stage.pod("one").uid] == stage.woken

    staged(back, claim("two"), claim("one"))
