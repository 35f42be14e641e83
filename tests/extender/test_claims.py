"""What the claims of pods ask for is read all at once, and what cannot be read is told."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from typing_extensions import override

from bridge.domain.model.claims import profiles
from bridge.domain.model.pods import Pod
from bridge.kube import decode
from bridge.kube.cache import Cache
from bridge.kube.claims.resource_claims import ResourceClaims
from bridge.kube.decode import PODS
from extender.claims import ClaimAsker
from tests import virtual_time
from tests.make.apiserver import ApiServer, Manifest
from tests.make.devices import PROFILES, claim, claiming, device_class
from tests.make.trouble import Trouble
from tests.virtual_time import VirtualClock

MEMBERS = 8
ANSWER_S = 1.0


class Slow(ApiServer):
    """Takes its time to answer, and remembers what it was asked."""

    def __init__(self, clock: VirtualClock, *there: Manifest) -> None:
        super().__init__(clock, Trouble())
        self.asked: list[str] = []
        for manifest in there:
            self.create(manifest)

    @override
    async def request(self, method: str, path: str, **said: Any) -> bytes:
        self.asked.append(path.rpartition("/")[2])
        await asyncio.sleep(ANSWER_S)
        return await super().request(method, path, **said)


def asked(
    pods: list[Manifest],
    there: list[Manifest],
    body: Callable[[ClaimAsker, Slow, tuple[Pod, ...]], Awaitable[None]],
) -> None:
    async def main(clock: VirtualClock) -> None:
        api = Slow(clock, device_class(), *pods, *there)
        members = tuple(decode.pod(msgspec.json.encode(each)) for each in api.pods.values())
        claims = ResourceClaims(api)  # type: ignore[arg-type]  # all that is called
        await body(ClaimAsker(claims, Cache(PODS), profiles.read(PROFILES)), api, members)

    virtual_time.run(main)


def test_the_claims_of_a_gang_are_read_at_once_and_its_class_once() -> None:
    async def body(asker: ClaimAsker, api: Slow, members: tuple[Pod, ...]) -> None:
        began = asyncio.get_running_loop().time()
        counted, _, faults = await asker.counted(members, None)

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
        faults = (await asker.counted(members, None))[2]

        (fault,) = faults
        assert "spec.resourceClaims[0]: spec" == fault.path
        assert "cannot be read: expected at most 32 parameters" in fault.message

    asked([claiming("odd")], [odd], body)
