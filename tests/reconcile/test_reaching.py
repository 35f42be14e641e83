"""Where a Controller's Slurm is and with which token it is asked: it may move, its key may change, and its objects may be unreadable."""

import asyncio
import base64
import contextlib
import re
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest

from slurmclient import UnusableTls
from slurmclient.errors import Unauthorized, Unavailable
from slurmclient.transport import jwt
from slurmclient.transport.exchange import Reply, Request
from slurmruntime.endpoints import finding
from slurmruntime.endpoints.finding import ControllerName, RestApiEndpoint, RestServer, ServerList
from slurmruntime.endpoints.objects import ControllerObjects
from slurmruntime.endpoints.signing import LIFETIME_S, TokenSigner
from slurmruntime.endpoints.transport import READ_AGAIN_S, ControllerTransport
from slurmruntime.kube.errors import NotFound
from slurmruntime.kube.errors import Unavailable as KubeUnavailable
from slurmruntime.values.faults import Fault, Refusal
from tests.virtual_time import VirtualClock, run

SITE = ControllerName("slurm", "site")
ASKS = Request(operation="ping", method="GET", path="/")
KEY, OTHER = b"k" * 32, b"o" * 32


def rest_api(name: str, of: str = "site", *, tls: str = "", **spec: Any) -> RestApiEndpoint:
    metadata = {"name": name, "annotations": {"slurm-bridge.dev/tls": tls} if tls else {}}
    body = {"metadata": metadata, "spec": {"controllerRef": {"name": of}, **spec}}
    return msgspec.convert(body, RestApiEndpoint)


def test_the_rest_apis_of_a_controller_are_asked_by_their_services() -> None:
    found = finding.servers(
        SITE,
        [
            rest_api("two", tls="off", service={"port": 80}),
            rest_api("one"),
            rest_api("none", replicas=0),
            rest_api("strangers", of="other"),
        ],
    )
    assert (
        RestServer("https://one-restapi.slurm.svc:6820", "one-restapi-tls"),
        RestServer("http://two-restapi.slurm.svc:80", ""),
    ) == found


def test_one_that_is_deleted_is_asked_last() -> None:
    """It stays until the last worker is drained."""
    body = {
        "metadata": {"name": "one", "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"controllerRef": {"name": "site"}},
    }
    leaving = msgspec.convert(body, RestApiEndpoint)
    one = RestServer("https://one-restapi.slurm.svc:6820", "one-restapi-tls")
    two = RestServer("https://two-restapi.slurm.svc:6820", "two-restapi-tls")
    assert (two, one) == finding.servers(SITE, [leaving, rest_api("two")])
    assert (one,) == finding.servers(SITE, [leaving])


def test_a_rest_api_that_cannot_be_read_costs_only_itself() -> None:
    metadata = {"name": "one", "annotations": {"slurm-bridge.dev/tls": "off"}}
    good = {"metadata": metadata, "spec": {"controllerRef": {"name": "site"}}}
    odd = {"metadata": {"name": "odd"}, "spec": {"controllerRef": "site"}}
    listed = {"/restapis": {"items": [odd, good]}}
    found = asyncio.run(ControllerObjects(Api(listed)).servers(SITE))  # type: ignore[arg-type]  # all it calls
    assert ServerList(("http://one-restapi.slurm.svc:6820",), "") == found

    bare: dict[str, dict[str, object]] = {
        "/restapis": {"items": [odd]},
        "/controllers/site": {"spec": {}},
    }
    with pytest.raises(Refusal, match=r"has no RestApi.*controllerRef"):
        asyncio.run(ControllerObjects(Api(bare)).servers(SITE))  # type: ignore[arg-type]  # all it calls


def test_a_controller_without_a_rest_api_is_told_so() -> None:
    with pytest.raises(Refusal, match="slurm/site has no RestApi"):
        finding.servers(SITE, [rest_api("strangers", of="other")])


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


PLAIN, WITH_TLS = (
    {"metadata": {"name": name, "annotations": marks}, "spec": {"controllerRef": {"name": "site"}}}
    for name, marks in (("plain", {"slurm-bridge.dev/tls": "off"}), ("safe", {}))
)
CAS = {"/configmaps/safe-restapi-tls": {"data": {"ca.crt": "PEM of the CAs"}}}


@pytest.mark.parametrize(
    ("rest_apis", "more", "urls", "trusted"),
    [
        ([WITH_TLS], CAS, ["https://safe"], "PEM of the CAs"),
        ([PLAIN], {}, ["http://plain"], ""),
        ([PLAIN, WITH_TLS], CAS, ["http://plain", "https://safe"], "PEM of the CAs"),
        ([PLAIN, WITH_TLS], {}, ["http://plain"], ""),
    ],
)
def test_a_server_is_known_by_the_cas_that_stand_beside_it(
    rest_apis: list[Any], more: dict[str, Any], urls: list[str], trusted: str
) -> None:
    objects = ControllerObjects(Api({"/restapis": {"items": rest_apis}, **more}))  # type: ignore[arg-type]  # all it calls
    found = asyncio.run(objects.servers(SITE))
    assert urls == [url.partition("-restapi")[0] for url in found.urls]
    assert trusted == found.trusted


@pytest.mark.parametrize("data", [None, {"data": None}, {"data": {"ca.crt": ""}}])
def test_one_without_cas_is_not_asked_in_clear(data: Any) -> None:
    more = {"/configmaps/safe-restapi-tls": data} if data else {}
    listed = {"/restapis": {"items": [WITH_TLS]}, "/controllers/site": CONTROLLER, **more}
    objects = ControllerObjects(Api(listed))  # type: ignore[arg-type]  # all it calls
    with pytest.raises(Refusal, match=r"ConfigMap safe-restapi-tls has no ca\.crt"):
        asyncio.run(objects.servers(SITE))


@pytest.mark.parametrize("rest_apis", [[], [WITH_TLS]])
def test_a_controller_that_is_not_there_is_told_before_its_rest_apis(rest_apis: list[Any]) -> None:
    objects = ControllerObjects(Api({"/restapis": {"items": rest_apis}}))  # type: ignore[arg-type]  # all it calls
    with pytest.raises(Refusal) as refusal:
        asyncio.run(objects.servers(SITE))
    missing = Fault("Controller", "Controller slurm/site does not exist: create it")
    assert (missing,) == refusal.value.faults


CONTROLLER = {"spec": {"jwtKeyRef": {"name": "keys", "key": "jwt.key"}}}
SECRET = {"data": {"jwt.key": base64.b64encode(KEY).decode()}}


@pytest.mark.parametrize(
    ("objects", "wrong"),
    [
        ({}, "Controller slurm/site does not exist"),
        ({"/site": {"spec": {}}}, "no token can be signed"),
        ({"/site": CONTROLLER}, "Secret slurm/keys is missing"),
        ({"/site": CONTROLLER, "/keys": {"data": None}}, "has no jwt.key"),
        ({"/site": CONTROLLER, "/keys": {"data": {"jwt.key": "?"}}}, "has no jwt.key"),
    ],
)
def test_what_keeps_a_token_from_being_signed_is_said(objects: dict[str, Any], wrong: str) -> None:
    with pytest.raises(Refusal, match=re.escape(wrong)):
        asyncio.run(ControllerObjects(Api(objects)).signing_key(SITE))  # type: ignore[arg-type]  # all it calls


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
        source = TokenSigner(read, clock)
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

    def __init__(self, known: ServerList) -> None:
        self.known = known
        self.is_away = False
        self.is_closed = False
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    async def exchange(self, request: Request) -> Reply:
        await self.goes_on.wait()
        assert not self.is_closed
        if self.is_away:
            raise Unavailable(request.operation, "cannot be reached")
        return Reply(status=200, body=self.known.urls[0].encode())

    @contextlib.asynccontextmanager
    async def open(self, request: Request) -> AsyncIterator[aiohttp.ClientResponse]:
        raise AssertionError(request)
        yield

    async def close(self) -> None:
        self.is_closed = True


def test_requests_follow_servers_that_move_and_nothing_under_way_is_cut_off() -> None:
    places: list[ServerList | Exception] = [Refusal(Fault("RestApi", "none"))]
    opened: list[Servers] = []

    async def find() -> ServerList:
        if isinstance(places[0], Exception):
            raise places[0]
        return places[0]

    def opens(known: ServerList) -> Any:
        opened.append(Servers(known))
        return opened[-1]

    async def main(clock: VirtualClock) -> None:
        transport = ControllerTransport(find, opens, clock)
        with pytest.raises(Unavailable, match="none"):
            await transport.exchange(ASKS)
        places[0] = ServerList(("http://a",), "")
        assert b"http://a" == (await transport.exchange(ASKS)).body

        places[0] = ServerList(("http://b",), "")
        opened[0].goes_on.clear()
        async with asyncio.TaskGroup() as group:
            slow = group.create_task(transport.exchange(ASKS))
            await clock.sleep(READ_AGAIN_S + 1)
            assert b"http://b" == (await transport.exchange(ASKS)).body
            assert not opened[0].is_closed
            opened[0].goes_on.set()
        assert b"http://a" == slow.result().body
        assert opened[0].is_closed

        places[0] = ServerList(("http://c",), "")
        opened[1].is_away = True
        with pytest.raises(Unavailable, match="reached"):
            await transport.exchange(ASKS)
        assert b"http://c" == (await transport.exchange(ASKS)).body  # without waiting

        places[0] = KubeUnavailable("GET", "/", message="away")
        await clock.sleep(READ_AGAIN_S + 1)
        assert b"http://c" == (await transport.exchange(ASKS)).body
        await transport.close()
        assert opened[2].is_closed

    run(main)


def test_other_cas_are_followed_and_unusable_ones_change_nothing() -> None:
    places = [ServerList(("https://a",), "no PEM")]
    opened: list[Servers] = []

    async def find() -> ServerList:
        return places[0]

    def opens(known: ServerList) -> Any:
        if known.trusted == "no PEM":
            raise UnusableTls("no PEM")
        opened.append(Servers(known))
        return opened[-1]

    async def main(clock: VirtualClock) -> None:
        transport = ControllerTransport(find, opens, clock)
        with pytest.raises(Unavailable, match="no PEM"):
            await transport.exchange(ASKS)
        places[0] = ServerList(("https://a",), "one")
        await clock.sleep(READ_AGAIN_S + 1)
        await transport.exchange(ASKS)
        places[0] = ServerList(("https://a",), "one and two")
        await clock.sleep(READ_AGAIN_S + 1)
        await transport.exchange(ASKS)
        assert ["one", "one and two"] == [each.known.trusted for each in opened]
        assert opened[0].is_closed

        places[0] = ServerList(("https://a",), "no PEM")
        await clock.sleep(READ_AGAIN_S + 1)
        await transport.exchange(ASKS)
        assert "one and two" == opened[-1].known.trusted
        assert not opened[-1].is_closed

    run(main)
