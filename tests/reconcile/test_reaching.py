"""Where a Controller's Slurm is and with which token it is asked: it may move, its key may change, and its objects may be unreadable."""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest

from bridge.domain.faults import Fault, Refused
from bridge.kube.errors import NotFound
from bridge.kube.errors import Unavailable as KubeUnavailable
from bridge.reconcile.reaching import finding
from bridge.reconcile.reaching.finding import ControllerName, FoundRestApi
from bridge.reconcile.reaching.objects import ControllerObjects
from bridge.reconcile.reaching.signing import LIFETIME_S, SignedToken
from bridge.reconcile.reaching.transport import LOOK_AGAIN_S, FoundTransport
from slurmclient.errors import Unauthorized, Unavailable
from slurmclient.transport import jwt
from slurmclient.transport.exchange import Reply, Request
from tests.virtual_time import VirtualClock, run

SITE = ControllerName("slurm", "site")
ASKS = Request(operation="ping", method="GET", path="/")
KEY, OTHER = b"k" * 32, b"o" * 32


def rest_api(name: str, of: str = "site", **spec: Any) -> FoundRestApi:
    body = {"metadata": {"name": name}, "spec": {"controllerRef": {"name": of}, **spec}}
    return msgspec.convert(body, FoundRestApi)


def test_the_rest_apis_of_a_controller_are_asked_by_their_services() -> None:
    found = finding.urls(
        SITE,
        [
            rest_api("two", service={"port": 80}),
            rest_api("one"),
            rest_api("none", replicas=0),
            rest_api("strangers", of="other"),
        ],
    )
    assert ("http://one-restapi.slurm.svc:6820", "http://two-restapi.slurm.svc:80") == found


def test_a_controller_without_a_rest_api_is_told_so() -> None:
    found = finding.urls(SITE, [rest_api("strangers", of="other")])
    assert isinstance(found, Refused)
    assert "slurm/site has no RestApi" in found.text


@pytest.mark.parametrize("text", ["site", "/site", "slurm/", "slurm/a/b", "Slurm/site"])
def test_a_name_written_otherwise_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="NAMESPACE/NAME"):
        ControllerName.parse(text)


class Api:
    """Has a few objects."""

    def __init__(self, objects: dict[str, Any]) -> None:
        self.objects = objects

    async def request(self, method: str, path: str) -> bytes:
        for end, body in self.objects.items():
            if path.endswith(end):
                return msgspec.json.encode(body)
        raise NotFound(method, path, message="not there")


CONTROLLER = {"spec": {"jwtKeyRef": {"name": "keys", "key": "jwt.key"}}}
SECRET = {"data": {"jwt.key": base64.b64encode(KEY).decode()}}


@pytest.mark.parametrize(
    ("objects", "wrong"),
    [
        ({}, "there is no slurm/site"),
        ({"/site": {"spec": {}}}, "no token can be signed"),
        ({"/site": CONTROLLER}, "Secret slurm/keys is missing"),
        ({"/site": CONTROLLER, "/keys": {"data": None}}, "has no jwt.key"),
        ({"/site": CONTROLLER, "/keys": {"data": {"jwt.key": "?"}}}, "has no jwt.key"),
    ],
)
def test_what_keeps_a_token_from_being_signed_is_said(objects: dict[str, Any], wrong: str) -> None:
    found = asyncio.run(ControllerObjects(Api(objects)).signing_key(SITE))  # type: ignore[arg-type]  # all it calls
    assert isinstance(found, Refused)
    assert wrong in found.text


def test_the_key_is_read_from_the_secret_that_the_controller_names() -> None:
    objects = ControllerObjects(Api({"/site": CONTROLLER, "/keys": SECRET}))  # type: ignore[arg-type]  # all it calls
    assert KEY == asyncio.run(objects.signing_key(SITE))


def test_a_token_is_kept_renewed_and_follows_another_key_when_refused() -> None:
    keys: list[bytes | Exception] = [KEY]

    async def read() -> bytes:
        if isinstance(keys[0], Exception):
            raise keys[0]
        return keys[0]

    async def main(clock: VirtualClock) -> None:
        source = SignedToken(read, clock)
        first = await source.token()
        assert "root" == jwt.user_of(first)
        keys[0] = OTHER
        assert first == await source.token()
        second = await source.token(refused=first)
        assert first != second
        assert second == await source.token(refused=first)  # of one who was slower

        keys[0] = KubeUnavailable("GET", "/", message="away")
        await clock.sleep(0.9 * LIFETIME_S)
        assert second == await source.token()  # it is due, and still good
        await clock.sleep(0.2 * LIFETIME_S)
        with pytest.raises(Unauthorized):
            await source.token()
        keys[0] = KEY
        assert await source.token() not in (first, second)

    run(main)


class Servers:
    """A transport that says where it leads, and may not lead there any more."""

    def __init__(self, urls: tuple[str, ...]) -> None:
        self.urls = urls
        self.is_away = False
        self.is_closed = False
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def exchange(self, request: Request) -> Reply:
        await self.goes_on.wait()
        assert not self.is_closed
        if self.is_away:
            raise Unavailable(request.operation, "cannot be reached")
        return Reply(status=200, body=self.urls[0].encode())

    @contextlib.asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[aiohttp.ClientResponse]:
        raise AssertionError(request)
        yield

    async def close(self) -> None:
        self.is_closed = True


def test_requests_follow_servers_that_move_and_nothing_under_way_is_cut_off() -> None:
    places: list[tuple[str, ...] | Refused | Exception] = [Refused((Fault("RestApi", "none"),))]
    opened: list[Servers] = []

    async def find() -> tuple[str, ...] | Refused:
        if isinstance(places[0], Exception):
            raise places[0]
        return places[0]

    def opens(urls: tuple[str, ...]) -> Any:
        opened.append(Servers(urls))
        return opened[-1]

    async def main(clock: VirtualClock) -> None:
        transport = FoundTransport(find, opens, clock)
        with pytest.raises(Unavailable, match="none"):
            await transport.exchange(ASKS)
        places[0] = ("http://a",)
        assert b"http://a" == (await transport.exchange(ASKS)).body

        places[0] = ("http://b",)
        opened[0].goes_on.clear()
        async with asyncio.TaskGroup() as group:
            slow = group.create_task(transport.exchange(ASKS))
            await clock.sleep(LOOK_AGAIN_S + 1)
            assert b"http://b" == (await transport.exchange(ASKS)).body
            assert not opened[0].is_closed
            opened[0].goes_on.set()
        assert b"http://a" == slow.result().body
        assert opened[0].is_closed

        places[0] = ("http://c",)
        opened[1].is_away = True
        with pytest.raises(Unavailable, match="reached"):
            await transport.exchange(ASKS)
        assert b"http://c" == (await transport.exchange(ASKS)).body  # without waiting

        places[0] = KubeUnavailable("GET", "/", message="away")
        await clock.sleep(LOOK_AGAIN_S + 1)
        assert b"http://c" == (await transport.exchange(ASKS)).body
        await transport.close()
        assert opened[2].is_closed

    run(main)
