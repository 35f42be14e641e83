"""What wakes the control plane's loop, and what ends the process."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest

from slurmoperator.rivals import Rivals
from slurmruntime.kube import errors
from slurmruntime.process.lifetime import StartAfresh
from tests.slurmoperator.daemons.peers import Leaders, controller, part, secret
from tests.virtual_time import VirtualClock, run

SIGNING = secret("site-auth-jwt", jwt_key=b"k" * 64)


def other_token() -> Any:
    return part("Token", "other", secretRef={"name": "other-token", "key": "token"})


def test_a_stateful_set_that_somebody_deletes_is_there_again_at_once() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        leaders.api.put(controller())
        await leaders.lead()
        seen: list[bool] = []

        def look() -> None:
            seen.append("site-controller" in leaders.api.of("StatefulSet"))

        remove = partial(leaders.api.remove, "StatefulSet", "site-controller")
        await leaders.lead(then={70.0: remove, 70.01: look, 71.0: look})
        assert [False, True] == seen

    run(main)


def test_readiness_is_told_when_it_changes() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        leaders.api.put(controller())
        await leaders.lead(for_s=2)
        assert "True" == leaders.api.condition("Controller", "Ready")[0]

    run(main)


def test_a_change_wakes_those_that_depend_on_it_and_no_token_of_somebody_else() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock)
        for each in (controller(), part("RestApi"), SIGNING, part("Token"), other_token()):
            leaders.api.put(each)
        await leaders.lead()
        reads: list[str] = []
        read = leaders.api._read

        def reading(method: str, path: str) -> Any:
            reads.append(path)
            return read(method, path)

        leaders.api._read = reading  # type: ignore[method-assign]  # watched
        woken: list[set[str]] = []

        def note() -> None:
            names = ("site-config", "site-restapi", "alice-token", "other-token")
            woken.append({name for name in names if any(each.endswith(name) for each in reads)})
            reads.clear()

        edit = partial(leaders.api.change, "Token", "site", lifetime="1h")
        change = partial(leaders.api.change, "Controller", "site", extraConf="")
        events: dict[float, Callable[[], None]] = {
            9.9: reads.clear,
            10: edit,
            12: note,
            19.9: reads.clear,
            20: change,
            22: note,
        }
        await leaders.lead(for_s=30, then=events)
        assert [{"alice-token"}, {"site-config", "site-restapi"}] == woken

    run(main)


class _Registered:
    """An API server with webhooks, or without an answer."""

    groups: tuple[str, ...] | None = ()

    async def request(self, method: str, path: str, **_: Any) -> bytes:
        if self.groups is None:
            raise errors.Unavailable(method, path, message="away")
        if path.endswith("/leases"):
            return b'{"metadata": {"resourceVersion": "1"}, "items": []}'
        rules = [{"apiGroups": [group]} for group in self.groups]
        hook = {"metadata": {"name": "theirs"}, "webhooks": [{"rules": rules}]}
        return msgspec.json.encode({"metadata": {"resourceVersion": "1"}, "items": [hook]})


def test_a_rival_that_comes_later_ends_the_process_and_one_that_is_there_does_not() -> None:
    async def main(clock: VirtualClock) -> None:
        api = _Registered()
        loop = asyncio.get_running_loop()
        rivals = Rivals(api, clock, release="slurm-bridge-system")  # type: ignore[arg-type]  # all it calls
        api.groups = ("slinky.slurm.net",)
        loop.call_later(60, lambda: setattr(api, "groups", ()))
        alone: list[bool] = []
        loop.call_later(55, lambda: alone.append(rivals.alone.is_set()))
        loop.call_later(80, lambda: alone.append(rivals.alone.is_set()))
        loop.call_later(90, lambda: setattr(api, "groups", None))  # nothing is known: go on
        loop.call_later(200, lambda: alone.append(rivals.alone.is_set()))
        loop.call_later(210, lambda: setattr(api, "groups", ("slinky.slurm.net",)))
        with pytest.raises(StartAfresh, match="theirs is registered"):
            await rivals.run(asyncio.Event())

        assert [False, True, True] == alone
        assert 210 <= clock.monotonic() <= 221
        assert not rivals.alone.is_set()
        assert "theirs is registered" in (rivals.check() or "")

    run(main)
