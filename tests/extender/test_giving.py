"""A device is given once, whatever our cache of claims shows."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from typing_extensions import override

from bridge.domain import names
from bridge.domain.ids import JobId, KubeNode, PodUid, SlurmNode, alone_key
from bridge.domain.lifecycle.actions import Assign
from bridge.domain.model.claims import giving as rules
from bridge.domain.model.claims import profiles, reservations
from bridge.domain.model.claims.values import ResourceClaim
from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.workloads import membership
from bridge.kube import decode, errors
from bridge.kube.cache import Cache
from bridge.kube.claims import resource_claims
from bridge.kube.claims.resource_claims import CLAIMS, CLASSES, ResourceClaims
from bridge.kube.claims.slices import SLICES
from bridge.reconcile.actuator import NotGiven
from extender import giving
from extender.giving import Devices
from extender.known_claims import KnownClaims
from tests import virtual_time
from tests.make import placing
from tests.make.apiserver import ApiServer, Manifest
from tests.make.devices import PROFILES, claim, claiming, device_class, device_slice
from tests.make.manifests import CLUSTER, running
from tests.make.slurm import Job, Slurm
from tests.make.slurm_nodes import Node
from tests.make.trouble import Fault, Trouble
from tests.virtual_time import VirtualClock


class Asked(ApiServer):
    """Remembers what it was asked."""

    def __init__(self, clock: VirtualClock, trouble: Trouble, *caches: Cache[Any]) -> None:
        super().__init__(clock, trouble, *caches)
        self.asked: list[str] = []

    @override
    async def request(self, method: str, path: str, **said: Any) -> bytes:
        self.asked.append(f"{method} {path.rpartition('/v1/')[2]}")
        return await super().request(method, path, **said)


class AskedSlurm(Slurm):
    """The same."""

    def __init__(self, trouble: Trouble, jobs: list[Job], nodes: list[Node]) -> None:
        super().__init__(trouble, jobs, nodes)
        self.asked: list[str] = []

    @override
    async def call(self, label: str, *said: Any, **more: Any) -> Any:
        self.asked.append(label)
        return await super().call(label, *said, **more)


class Stage:
    """A leader that gives the one device of a node, whose cache of claims shows nothing at all."""

    def __init__(
        self, clock: VirtualClock, trouble: Trouble, *there: Manifest, devices: int = 1
    ) -> None:
        self.clock = clock
        self.slices = slices = Cache(SLICES)
        self.woken: list[PodUid] = []
        self.everyone = Cache(CLAIMS)
        self.classes = Cache(CLASSES)
        self.api = Asked(clock, trouble, slices)
        for manifest in (device_class(), device_slice(devices=devices), *there):
            self.api.create(manifest)
        self.kube_nodes = Cache(decode.NODES)
        self.kube_nodes.put(placing.kube_node("s1"))
        self.slurm = slurm = AskedSlurm(
            trouble,
            [
                *(running(number, gres="gpu:example:1(IDX:0)") for number in (1, 2)),
                running(3, gres=f"gpu:example:{devices}(IDX:0-{devices - 1})"),
            ],
            [Node(name="s1", gres=f"gpu:example:{devices}")],
        )
        claims = ResourceClaims(self.api)  # type: ignore[arg-type]  # all that is called
        self.gres: str | None = None
        """What the node had in Slurm when the nodes were last read."""
        self.devices = Devices(
            claims=claims,
            known=KnownClaims(claims, self.everyone, self.classes),
            slurm=slurm,  # type: ignore[arg-type]
            everyone=self.everyone,
            slices=slices,
            kube_nodes=self.kube_nodes,
            gres=lambda _: self.gres,
            profiles=profiles.read(PROFILES),
            clock=clock,
            wake=self.woken.append,
        )

    def pod(self, name: str) -> Pod:
        return decode.pod(msgspec.json.encode(self.api.pods[name]))

    async def give(self, name: str, job: int, *, read: SlurmJob | None = None) -> None:
        """Give the pod of this name its own claim's device, for a job that has the node's only one.

        read: the job, as it was read.
        """
        action = Assign(
            job_id=JobId(job),
            sluid=None,
            slurm_node=SlurmNode("s1"),
            kube_node=KubeNode("s1"),
            grant="",
        )
        await self.devices.give(self.pod(name), action, read)

    def given(self) -> list[str]:
        """The claims that have a device."""
        found = self.api.of("ResourceClaim").items()
        return [name for name, each in found if each.get("status", {}).get("allocation")]


def staged(
    body: Callable[[Stage], Awaitable[None]],
    *there: Manifest,
    trouble: Trouble | None = None,
    devices: int = 1,
) -> None:
    pods = [claiming("one"), claiming("two")]

    async def main(clock: VirtualClock) -> None:
        stage = Stage(clock, trouble or Trouble(), *pods, *there, devices=devices)
        await clock.sleep(1)  # the watch of slices has told
        await body(stage)

    virtual_time.run(main)


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


NAMED = "PATCH namespaces/team-a/resourceclaims/one"


def test_what_was_prepared_takes_one_write_and_no_question() -> None:
    """The watches show the claim and its class, a reading of Slurm the devices of job and node."""

    async def one(stage: Stage) -> None:
        await stage.give("two", 2)  # a leader's first gift reads all claims
        await stage.devices.take_back(stage.pod("two"))
        stage.everyone.put(_read(stage, "one"))
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
        stage.everyone.put(_read(stage, "one"))
        await stage.devices.prepare([stage.pod("one")])
        await stage.give("one", 1)
        assert ["one"] == stage.given()
        assert rules.is_protected(_read(stage, "one"))

    staged(one, claim("one"), trouble=Trouble(fault, at=1))


def test_a_claim_that_somebody_has_just_edited_is_read_and_given() -> None:
    """The watch has not told yet, and never will."""

    async def one(stage: Stage) -> None:
        stage.everyone.put(_read(stage, "one"))
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
            stage.everyone.put(_read(stage, name))
        with pytest.raises(errors.Unavailable):
            await stage.give("many", 3)
        assert 2 == len(stage.given())
        await stage.give("many", 3)
        assert ["a", "b", "c"] == stage.given()

    claims = [claim(name) for name in "abc"]
    staged(many, claiming("many", *"abc"), *claims, trouble=Trouble(at=1), devices=3)


def test_what_the_cache_shows_is_not_reserved_besides() -> None:
    """The claim is taken back later: its device must be free as soon as the cache shows that."""

    async def again(stage: Stage) -> None:
        await stage.give("one", 1)
        stage.everyone.put(_read(stage, "one"))
        del stage.api.of("ResourceClaim")["one"]["status"]
        stage.everyone.put(_read(stage, "one", version="later"))
        await stage.give("two", 2)
        assert ["two"] == stage.given()

    staged(again, claim("one"), claim("two"))


def _read(stage: Stage, name: str, version: str = "") -> ResourceClaim:
    found = stage.api.of("ResourceClaim")[name]
    if version:
        found["metadata"]["resourceVersion"] = version
    return resource_claims.claim(msgspec.json.encode(found))


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
            stage.everyone.put(_read(stage, name))
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
        for each in slices:
            stage.slices.remove(each.name)
        with pytest.raises(NotGiven, match="ResourceSlices have 0"):
            await stage.give("one", 1)
        assert [] == stage.woken

        for each in slices:
            stage.slices.put(replace(each, name="elsewhere", node="s2"))
        assert [] == stage.woken
        for each in slices:
            stage.slices.put(replace(each, resource_version="3"))
        assert [stage.pod("one").uid] == stage.woken

        await stage.give("one", 1)
        for each in slices:
            stage.slices.put(replace(each, resource_version="4"))
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
