"""What the claims of pods ask for is read all at once, and what cannot be read is told."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from typing_extensions import override

from bridge.domain.model.claims import profiles
from bridge.domain.model.pods import Pod
from bridge.kube import decode
from bridge.kube.claims.resource_claims import CLAIMS, CLASSES, ResourceClaims
from bridge.kube.claims.templates import ClaimTemplates
from bridge.kube.decode import PODS
from extender.claims.asking import ClaimAsker, Templates
from extender.claims.known import KnownClaims
from slurmruntime.kube import errors
from slurmruntime.kube.cache import Cache
from tests import virtual_time
from tests.make.apiserver import ApiServer, Manifest
from tests.make.devices import PROFILES, by_class, claim, claiming, device_class, template
from tests.make.trouble import Trouble
from tests.virtual_time import VirtualClock

MEMBERS = 8
ANSWER_S = 1.0
LATE = timedelta(hours=1)


class Slow(ApiServer):
    """Takes its time to answer, and remembers what it was asked."""

    def __init__(self, clock: VirtualClock, *there: Manifest) -> None:
        super().__init__(clock, Trouble())
        self.asked: list[str] = []
        self.refuses = ""
        """Why nothing may be created."""
        for manifest in there:
            self.create(manifest)

    @override
    async def request(self, method: str, path: str, **said: Any) -> bytes:
        self.asked.append(path.rpartition("/")[2])
        await asyncio.sleep(ANSWER_S)
        if method == "POST" and self.refuses:
            raise errors.Forbidden(method, path, status=403, message=self.refuses)
        return await super().request(method, path, **said)


def asked(
    pods: list[Manifest],
    there: list[Manifest],
    body: Callable[[ClaimAsker, Slow, tuple[Pod, ...]], Awaitable[None]],
) -> None:
    async def main(clock: VirtualClock) -> None:
        api = Slow(clock, device_class(), *pods, *there)
        members = tuple(decode.pod(msgspec.json.encode(pod)) for pod in api.pods.values())
        claims = ResourceClaims(api)  # type: ignore[arg-type]  # all that is called
        known, its = KnownClaims(claims, Cache(CLAIMS), Cache(CLASSES)), profiles.read(PROFILES)
        templates = Templates(known, ClaimTemplates(api), its, clock)  # type: ignore[arg-type]
        asker = ClaimAsker(known, templates, pods=Cache(PODS), profiles=its, clock=clock)
        await body(asker, api, members)

    virtual_time.run(main)


def test_the_claims_of_a_gang_are_read_at_once_and_its_class_once() -> None:
    async def body(asker: ClaimAsker, api: Slow, members: tuple[Pod, ...]) -> None:
        began = asyncio.get_running_loop().time()
        counted, _, faults = await asker.add_devices(members, None)

        assert not faults
        assert [1] * MEMBERS == [sum(each.demand.extended.values()) for each in counted]
        assert sorted(api.asked) == sorted([*names, "gpu"])
        assert 2 * ANSWER_S == asyncio.get_running_loop().time() - began  # virtual: claims, class

    names = [f"m{number}" for number in range(MEMBERS)]
    asked([claiming(name) for name in names], [claim(name) for name in names], body)


def test_a_claim_that_cannot_be_read_is_told() -> None:
    odd = claim("odd")
    odd["spec"]["devices"]["config"] = [{"opaque": {"driver": "d", "parameters": "x" * 2**14}}]

    async def body(asker: ClaimAsker, _: Slow, members: tuple[Pod, ...]) -> None:
        faults = (await asker.add_devices(members, None))[2]

        (fault,) = faults
        assert "spec.resourceClaims[0]: spec" == fault.path
        assert "cannot be read: expected at most 32 parameters" in fault.message

    asked([claiming("odd")], [odd], body)


def test_a_template_that_admission_has_named_is_created_once_for_all_that_name_it() -> None:
    async def body(asker: ClaimAsker, api: Slow, members: tuple[Pod, ...]) -> None:
        for _ in range(2):
            counted, _, faults = await asker.add_devices(members, None)
            assert not faults
            assert [{"resource.k8s.io/gpu:example": 2}] * 2 == [
                each.demand.extended for each in counted
            ]
        assert 1 == api.asked.count("resourceclaimtemplates")
        (made,) = api.of("ResourceClaimTemplate").values()
        exactly = {"deviceClassName": "gpu", "count": 2}
        requests = [{"name": "devices", "exactly": exactly}]
        assert {"spec": {"devices": {"requests": requests}}} == made["spec"]

    asked([by_class("one", devices=2), by_class("two", devices=2)], [], body)


def test_whoever_creates_the_template_first_wins() -> None:
    async def body(asker: ClaimAsker, api: Slow, members: tuple[Pod, ...]) -> None:
        (one,) = members
        found = await asyncio.gather(
            asker.add_devices((one,), None), asker.add_devices((one,), None)
        )

        assert [()] * 2 == [faults for _, _, faults in found]
        assert 1 == len(api.conflicts)

    asked([by_class("one")], [], body)


def test_a_template_that_must_not_be_created_is_told() -> None:
    async def body(asker: ClaimAsker, api: Slow, members: tuple[Pod, ...]) -> None:
        api.refuses = "exceeded quota: few"
        (fault,) = (await asker.add_devices(members, None))[2]
        assert "cannot be read: exceeded quota: few" == fault.message

        api.refuses = ""
        assert () == (await asker.add_devices(members, None))[2]

    asked([by_class("one")], [], body)


def test_a_pod_whose_claim_kubernetes_does_not_make_gets_no_job() -> None:
    """A quota may be in the way: the job would hold devices for nobody, time and again."""

    async def body(asker: ClaimAsker, _: Slow, members: tuple[Pod, ...]) -> None:
        assert () == (await asker.add_devices(members, None))[2]

        late = tuple(replace(member, created_at=member.created_at - LATE) for member in members)
        (fault,) = (await asker.add_devices(late, None))[2]
        assert "Kubernetes has not made the claim from template slurm-bridge-1" in fault.message

    asked([by_class("one")], [], body)


def test_a_pod_whose_claim_is_gone_gets_no_job() -> None:
    """Kubernetes makes no other for as long as the pod's status names one."""
    bereft = by_class("one")
    bereft["status"]["resourceClaimStatuses"] = [
        {"name": "slurm-bridge-0", "resourceClaimName": "one-x7k2p"}
    ]

    async def body(asker: ClaimAsker, _: Slow, members: tuple[Pod, ...]) -> None:
        (fault,) = (await asker.add_devices(members, None))[2]
        assert "claim one-x7k2p, made from template slurm-bridge-1-of-gpu, is gone" in fault.message

    asked([bereft], [], body)


def test_a_template_of_another_name_is_not_created() -> None:
    other = by_class("one")
    other["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] = "mine"

    async def body(asker: ClaimAsker, api: Slow, members: tuple[Pod, ...]) -> None:
        (fault,) = (await asker.add_devices(members, None))[2]
        assert "there is no template mine" == fault.message
        assert {} == api.of("ResourceClaimTemplate")

    asked([other], [], body)


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("slurm-bridge-1-of-made-up", "there is no DeviceClass made-up"),
        ("slurm-bridge-33-of-gpu", "expected at most 32 devices in a claim"),
    ],
)
def test_nobody_has_templates_created_for_what_slurm_cannot_give(template: str, told: str) -> None:
    """Users write such names into their own claims, too, and the templates stay for good."""
    made_up = by_class("one")
    made_up["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] = template

    async def body(asker: ClaimAsker, api: Slow, members: tuple[Pod, ...]) -> None:
        (fault,) = (await asker.add_devices(members, None))[2]
        assert told == fault.message
        assert {} == api.of("ResourceClaimTemplate")

    asked([made_up], [], body)


def test_a_users_template_is_read_once_in_a_while() -> None:
    mine = by_class("one")
    mine["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] = "mine"

    async def body(asker: ClaimAsker, api: Slow, members: tuple[Pod, ...]) -> None:
        for seconds, reads in ((0, 1), (1, 1), (20, 2), (1, 2)):
            await asyncio.sleep(seconds)
            counted, _, _ = await asker.add_devices(members, None)
            assert {"resource.k8s.io/gpu:example": 2} == counted[0].demand.extended
            assert reads == api.asked.count("mine")

        api.remove("ResourceClaimTemplate", "mine")
        await asyncio.sleep(20)
        (fault,) = (await asker.add_devices(members, None))[2]
        assert "there is no template mine" == fault.message

    asked([mine], [template(count=2)], body)
