"""Which devices claims get: exactly those that Slurm gave, each once."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.domain.model.claims import giving, inventory, profiles
from bridge.domain.model.claims.giving import CannotGive
from bridge.domain.model.claims.values import (
    ClaimSpec,
    Device,
    DeviceClass,
    DeviceId,
    DeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from slurmruntime.values.ids import KubeNode, PodUid

PROFILES = profiles.read({"device.driver == 'd'": "gpu:a100", "device.driver == 'n'": "nic"})
CLASSES = {"gpu": DeviceClass(name="gpu", selectors=("device.driver == 'd'",))}
NODE, POD = KubeNode("n1"), PodUid("p1")


def a_slice(
    count: int, *, generation: int = 1, of: int = 1, name: str = "s", first: int = 0
) -> ResourceSlice:
    return ResourceSlice(
        name=name,
        node="n1",
        driver="d",
        pool="n1",
        generation=generation,
        of=of,
        devices=tuple(Device(id=device(first + index)) for index in range(count)),
    )


def device(index: int) -> DeviceId:
    return DeviceId("d", "n1", f"gpu-{index}")


def claim(name: str, *counts: int) -> ResourceClaim:
    requests = tuple(
        DeviceRequest(name=f"r{index}", device_class="gpu", count=count)
        for index, count in enumerate(counts)
    )
    return ResourceClaim(uid=name, namespace="ns", name=name, spec=ClaimSpec(requests=requests))


@pytest.mark.parametrize(
    ("registered", "do_agree"),
    [
        ({"gpu:a100": 4}, True),
        ({"gpu:a100": 4, "nic": 1, "gpu:h100": 0}, True),  # another kind, and none of a type
        ({"gpu:a100": 3}, False),
        ({"gpu:a100": 4, "gpu:h100": 1}, False),  # Slurm numbers the types of a kind together
        ({"gpu": 4}, False),
        ({}, False),
    ],
)
def test_slices_and_slurm_agree_only_if_each_type_of_the_kind_has_as_many(
    registered: dict[str, int], *, do_agree: bool
) -> None:
    present = {"gpu:a100": tuple(device(index) for index in range(4))}

    assert do_agree is giving.agree(present, registered, ["gpu:a100"])


def test_devices_are_in_the_order_of_their_numbers() -> None:
    found = inventory.of_node([a_slice(12)], PROFILES)

    assert found == {"gpu:a100": tuple(device(index) for index in range(12))}


def test_only_a_whole_newest_generation_counts() -> None:
    old = a_slice(4, generation=1, name="old")
    half = a_slice(2, generation=2, of=2, name="half")
    rest = a_slice(1, generation=2, of=2, name="rest", first=2)

    assert inventory.of_node([old, half], PROFILES) == {}
    assert inventory.counts(inventory.of_node([old, half, rest], PROFILES)) == {"gpu:a100": 3}


@given(st.data())
def test_every_pod_of_every_job_gets_its_own_devices_and_slurm_s(data: st.DataObject) -> None:
    total = data.draw(st.integers(1, 16))
    plugin = data.draw(st.integers(0, 4))  # devices of the same kind that a plugin has
    registered = {"gpu:a100": total, **({"gpu": plugin} if plugin else {})}
    present = inventory.of_node([a_slice(total)], PROFILES)
    free = list(range(plugin, plugin + total))
    given_to: list[DeviceId] = []
    while free:
        each = data.draw(st.integers(1, len(free)))
        pods = data.draw(st.integers(1, len(free) // each))
        chosen = data.draw(st.permutations(free))[: each * pods]
        free = [index for index in free if index not in chosen]
        for place in range(pods):
            mine = giving.portion({"gpu:a100": chosen}, {"gpu:a100": each}, place=place, of=pods)
            dealt = giving.deal(
                [claim("c", each)], CLASSES, PROFILES, giving.devices(mine, present, registered)
            )
            got = [found for gift in dealt for found in gift.devices]
            assert len(got) == each
            assert {int(found.device.removeprefix("gpu-")) + plugin for found in got} <= set(chosen)
            given_to += got
    assert len(set(given_to)) == len(given_to) == total


@pytest.mark.parametrize(
    ("given_there", "registered", "words"),
    [
        ({"gpu:a100": (0,)}, {"gpu:a100": 4}, "Slurm gave 1 gpu:a100 there"),
        ({"gpu:a100": (0, 1)}, {"gpu:a100": 5}, "Slurm has 5 gpu:a100 there, the node's"),
        ({"gpu:a100": (0, 4)}, {"gpu:a100": 4}, "with indexes"),
        ({}, {"gpu:a100": 4}, "Slurm gave 0 gpu:a100"),
    ],
)
def test_nothing_is_given_that_slurm_and_the_node_do_not_agree_on(
    given_there: dict[str, tuple[int, ...]], registered: dict[str, int], words: str
) -> None:
    present = inventory.of_node([a_slice(4)], PROFILES)

    with pytest.raises(CannotGive, match=words):
        giving.devices(giving.portion(given_there, {"gpu:a100": 2}), present, registered)


def test_a_device_that_another_claim_still_has_is_in_the_way() -> None:
    [gift] = giving.deal([claim("mine", 1)], CLASSES, PROFILES, {"gpu:a100": [device(1)]})
    other = replace(claim("other", 1), is_allocated=True, devices=(device(1),))

    assert "still given to claim ns/other" in giving.in_the_way([gift], [other], NODE)
    assert not giving.in_the_way([gift], [replace(other, devices=(device(2),))], NODE)
    assert not giving.in_the_way([gift], [replace(other, uid="mine")], NODE)
    assert giving.in_the_way([gift], [replace(other, node=NODE)], NODE)
    assert not giving.in_the_way([gift], [replace(other, node="another")], NODE)


def test_a_claim_that_was_given_just_so_needs_no_second_write() -> None:
    [gift] = giving.deal([claim("mine", 1)], CLASSES, PROFILES, {"gpu:a100": [device(1)]})
    done = replace(
        gift.claim, is_allocated=True, devices=(device(1),), node=NODE, reserved_for=(POD,)
    )

    assert not giving.is_done(gift, POD, NODE)
    assert giving.is_done(replace(gift, claim=done), POD, NODE)
    with pytest.raises(CannotGive, match="another pod"):
        giving.is_done(replace(gift, claim=replace(done, reserved_for=("p2",))), POD, NODE)
    earlier = replace(done, devices=(device(2),))
    assert not giving.is_done(replace(gift, claim=earlier), POD, NODE), "it is given anew"


def test_pods_of_a_gang_that_claim_different_numbers_get_nothing() -> None:
    with pytest.raises(CannotGive, match="each of the 2 pods there claims 1"):
        giving.portion({"gpu:a100": (0, 1, 2)}, {"gpu:a100": 1}, place=1, of=2)
