"""Claims that their author exchanges between the submit and the start, when Slurm has decided by the first one."""

import pytest

from bridge.reconcile.actuator import NotGiven
from tests.attacks import attack
from tests.extender.giver import Stage, staged
from tests.make.apiserver import Manifest
from tests.make.devices import claim, claiming


def larger(name: str) -> Manifest:
    """Of the same name, for all devices of the node."""
    made = claim(name)
    made["metadata"]["uid"] = "later"
    made["spec"]["devices"]["requests"][0]["exactly"]["count"] = 3
    return made


def administrators(name: str) -> Manifest:
    """Of the same name, for devices that others have, too."""
    made = claim(name)
    made["metadata"]["uid"] = "later"
    made["spec"]["devices"]["requests"][0]["exactly"]["adminAccess"] = True
    return made


@pytest.mark.parametrize(
    ("exchanged", "said"),
    [
        attack(
            "more",
            "have a job submitted for a claim of one device, and put a claim of the same name for all of them in its place before the pod starts",
            "a claim is read again when it is given devices, and gets as many as Slurm gave the job or none",
            larger("one"),
            "Slurm gave 1 gpu:example there, and the pod claims 3",
        ),
        attack(
            "of others",
            "put a claim with `adminAccess` in the place of the one that the job was submitted for, to use devices of others",
            "what cannot be submitted is not given either",
            administrators("one"),
            "devices that others use cannot be given again",
        ),
    ],
)
def test_what_is_claimed_beyond_the_job_is_not_given(exchanged: Manifest, said: str) -> None:
    async def swapped(stage: Stage) -> None:
        stage.everyone.put(stage.read("one"))  # which is all that the watch has shown
        stage.api.remove("ResourceClaim", "one")
        stage.api.create(exchanged)
        with pytest.raises(NotGiven, match=said):
            await stage.give("one", 1)
        assert [] == stage.given()

    staged(swapped, claim("one"), devices=3)


@pytest.mark.attack(
    "name the claim of another user's running pod in one's own pod, to compute on the device that their job pays for",
    "a claim that a pod uses is given to no other one",
)
def test_a_claim_that_another_pod_uses_is_not_given_again() -> None:
    async def second(stage: Stage) -> None:
        await stage.give("one", 1)
        with pytest.raises(NotGiven, match="in use by another pod"):
            await stage.give("mine", 1)
        assert ["uid-one"] == [
            user["uid"] for user in stage.api.of("ResourceClaim")["one"]["status"]["reservedFor"]
        ]

    staged(second, claiming("mine", "one"), claim("one"))
