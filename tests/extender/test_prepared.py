"""What a gift takes beside its write: nothing that was prepared, or that a watch or a reading has told."""

from dataclasses import replace

import msgspec
import pytest

from bridge.domain.model.claims import giving as rules
from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.workloads import membership
from bridge.kube.claims import resource_claims
from slurmruntime.kube import errors
from slurmruntime.values.ids import JobId, PodUid, SlurmNode, alone_key
from tests.extender.giver import Stage, staged
from tests.make.devices import claim, claiming
from tests.make.manifests import CLUSTER
from tests.make.trouble import Fault, Trouble

NAMED = "PATCH namespaces/team-a/resourceclaims/one"


def test_what_was_prepared_takes_one_write_and_no_question() -> None:
    """The watches show the claim and its class, a reading of Slurm the devices of job and node."""

    async def one(stage: Stage) -> None:
        await stage.give("two", 2)  # a leader's first gift reads all claims
        await stage.devices.take_back(stage.pod("two"))
        stage.everyone.put(stage.read("one"))
        its_class = msgspec.json.encode(stage.api.of("DeviceClass")["gpu"])
        stage.classes.put(resource_claims.device_class(its_class))
        stage.gres = "gpu:example:1"
        del stage.api.asked[:], stage.slurm.asked[:]

        for _ in range(2):
            await stage.devices.prepare([stage.pod("one"), stage.pod("two")])
            assert [NAMED] == stage.api.asked
        await stage.give("one", 1, read=RUNNING)
        assert [NAMED, f"{NAMED}/status"] == stage.api.asked
        assert [] == stage.slurm.asked
        assert ["one"] == stage.given()

    staged(one, claim("one"), claim("two"))


RUNNING = SlurmJob(
    id=JobId(1),
    sluid=None,
    phase=JobPhase.RUNNING,
    nodes=(SlurmNode("s1"),),
    devices={SlurmNode("s1"): {"gpu:example": (0,)}},
    identity=Identity(
        cluster=CLUSTER,
        kind=membership.POD,
        namespace="team-a",
        name="one",
        key=alone_key(PodUid("uid-one")),
        pods=(PodUid("uid-one"),),
    ),
)


@pytest.mark.parametrize(
    ("read", "gres", "asked"),
    [
        pytest.param(RUNNING, None, ["node.get"], id="the node was not read"),
        pytest.param(RUNNING, "gpu:example:2", ["node.get"], id="the node had other devices"),
        pytest.param(
            RUNNING, "gpu:example:1,gpu:older:2", ["node.get"], id="the kind had another type"
        ),
        pytest.param(None, "gpu:example:1", ["job.get"], id="the job was not read"),
        pytest.param(
            replace(RUNNING, devices=None), "gpu:example:1", ["job.get"], id="not in detail"
        ),
        pytest.param(
            replace(RUNNING, id=JobId(2)), "gpu:example:1", ["job.get"], id="another was read"
        ),
    ],
)
def test_what_no_reading_tells_is_asked(
    read: SlurmJob | None, gres: str | None, asked: list[str]
) -> None:
    async def one(stage: Stage) -> None:
        stage.gres = gres
        del stage.slurm.asked[:]
        await stage.give("one", 1, read=read)
        assert asked == stage.slurm.asked
        assert ["one"] == stage.given()

    staged(one, claim("one"))


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name)
def test_what_could_not_be_prepared_is_written_with_the_gift(fault: Fault) -> None:
    async def one(stage: Stage) -> None:
        stage.everyone.put(stage.read("one"))
        await stage.devices.prepare([stage.pod("one")])
        await stage.give("one", 1)
        assert ["one"] == stage.given()
        assert rules.is_protected(stage.read("one"))

    staged(one, claim("one"), trouble=Trouble(fault, at=1))


def test_a_claim_that_somebody_has_just_edited_is_read_and_given() -> None:
    """The watch has not told yet, and never will."""

    async def one(stage: Stage) -> None:
        stage.everyone.put(stage.read("one"))
        stage.api.of("ResourceClaim")["one"]["metadata"] |= {
            "resourceVersion": "edited",
            "labels": {"a": "b"},
        }
        await stage.give("one", 1)
        assert ["one"] == stage.given()
        assert 1 == len(stage.api.conflicts)

    staged(one, claim("one"))


def test_of_several_claims_each_is_written_whatever_becomes_of_the_others() -> None:
    async def many(stage: Stage) -> None:
        for name in "abc":
            stage.everyone.put(stage.read(name))
        with pytest.raises(errors.Unavailable):
            await stage.give("many", 3)
        assert 2 == len(stage.given())
        await stage.give("many", 3)
        assert ["a", "b", "c"] == stage.given()

    claims = [claim(name) for name in "abc"]
    staged(many, claiming("many", *"abc"), *claims, trouble=Trouble(at=1), devices=3)
