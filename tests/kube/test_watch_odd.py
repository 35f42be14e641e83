"""A watch among objects and answers that make no sense: only the odd ones stay out."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from bridge.domain.model.pods import Pod
from slurmruntime.kube.cache import Cache
from slurmruntime.values.oddities import UNHEARD, About, Oddities
from slurmruntime.values.oddities import Kind as Called
from tests.kube.answers import answering
from tests.kube.manifests import Manifest, pod
from tests.kube.reflecting import HASTY, names_in, reflecting
from tests.servers import until


def as_stored(name: str, version: str, **metadata: object) -> Manifest:
    manifest = pod(name)
    manifest["metadata"] |= {
        "namespace": "ns",
        "uid": f"uid-of-{name}",
        "resourceVersion": version,
        "creationTimestamp": "2026-01-01T12:00:00Z",
        **metadata,
    }
    return manifest


def event(kind: str, thing: Manifest) -> bytes:
    return json.dumps({"type": kind, "object": thing}).encode() + b"\n"


class OddServer:
    """Lists what it is told to, and sends what it is told to in each watch before it hangs up."""

    def __init__(self, lists: list[list[Manifest]], watches: list[list[bytes]]) -> None:
        self._lists, self._watches = lists, watches
        self.asked: list[str] = []
        """`LIST`, or the version a watch was to begin at."""

    async def pods(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("limit") == "1":  # asks only for the version
            return web.json_response({"metadata": {"resourceVersion": "12"}, "items": []})
        if "watch" not in request.query:
            self.asked.append("LIST")
            items = self._lists.pop(0) if len(self._lists) > 1 else self._lists[0]
            return web.json_response({"metadata": {"resourceVersion": "10"}, "items": items})
        self.asked.append(request.query["resourceVersion"])
        response = web.StreamResponse()
        await response.prepare(request)
        for line in self._watches.pop(0) if self._watches else []:
            await response.write(line)
        return response


@asynccontextmanager
async def reflecting_odd(
    server: OddServer, set_aside: Oddities = UNHEARD
) -> AsyncIterator[Cache[Pod]]:
    async with (
        answering({"/api/v1/pods": server.pods}) as client,
        reflecting(client, "ns", set_aside=set_aside) as (cache, _),
    ):
        yield cache


async def test_one_unreadable_object_stops_nobody() -> None:
    """It stays as it was last understood; the log names it."""
    odd = as_stored("odd", "2", labels=["no map"])
    server = OddServer(
        lists=[[as_stored("odd", "1"), as_stored("b", "1")], [odd, as_stored("c", "1")]],
        watches=[
            [event("MODIFIED", odd), event("MODIFIED", as_stored("b", "3"))],
            [event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"})],
        ],
    )
    with capture_logs() as logs:
        async with reflecting_odd(server) as cache:
            await until(lambda: names_in(cache) == {"odd", "c"}, 10)

    assert ["LIST", "10", "3", "LIST"] == server.asked[:4]
    complaints = [e["error"] for e in logs if e["event"] == "reflector.object_unreadable"]
    assert 2 == len(complaints)
    assert all("Pod ns/odd" in text and "$.metadata.labels" in text for text in complaints)


async def test_what_cannot_be_read_is_known_to_be_there_until_it_is_gone() -> None:
    odd, mended = (as_stored(name, "2", labels=["no map"]) for name in ("odd", "mended"))
    watches = [[event("MODIFIED", as_stored("mended", "3"))]]
    server = OddServer(lists=[[odd, mended], [as_stored("c", "1")]], watches=watches)
    async with reflecting_odd(server) as cache:
        await until(lambda: names_in(cache) == {"mended"}, 10)
        assert {"uid-of-odd": "ns/odd"} == cache.unreadable
        watches.append([event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"})])
        await until(lambda: names_in(cache) == {"c"}, 10)
        assert {} == cache.unreadable


class Aside:
    """Writes down what is set aside."""

    def __init__(self) -> None:
        self.now: dict[str, About | None] = {}
        self.said: list[str] = []

    def tell(self, kind: Called, name: str, reason: str, *, about: About | None = None) -> None:
        self.said.append(f"{kind} {name}: {reason}")
        self.now[name] = about

    def crashed(
        self, kind: Called, name: str, error: Exception, *, about: About | None = None
    ) -> None:
        raise NotImplementedError

    def settled(self, kind: Called, name: str) -> None:
        del self.now[name]


async def test_an_unreadable_object_is_set_aside_until_it_can_be_read() -> None:
    """Or is gone; and one that has not even a name is skipped, and the rest of its list read."""
    odd = as_stored("odd", "1", labels=["no map"])
    expired = event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired"})
    server = OddServer(
        lists=[[{"kind": "Pod"}, odd, as_stored("b", "1")], [as_stored("odd", "3")]],
        watches=[
            [
                event("ADDED", as_stored("late", "11", labels=["no map"])),
                event("DELETED", as_stored("b", "12", labels=["no map"])),
            ],
            [expired],
        ],
    )
    aside = Aside()
    async with reflecting_odd(server, aside) as cache:
        assert {"b"} == names_in(cache)
        await until(lambda: names_in(cache) == {"odd"}, 10)
        await until(lambda: set(aside.now) == {"without a name"}, 10)

    assert "pod ns/odd: " in aside.said[1]
    assert "$.metadata.labels" in aside.said[1]
    assert any(said.startswith("pod ns/late: ") for said in aside.said)  # until the next list


async def test_an_event_can_be_told_of_an_unreadable_object() -> None:
    server = OddServer(lists=[[as_stored("odd", "1", labels=["no map"])]], watches=[])
    aside = Aside()
    async with reflecting_odd(server, aside):
        told = aside.now["ns/odd"]

    assert About(kind="Pod", namespace="ns", name="odd", uid="uid-of-odd") == told


async def test_a_version_of_an_unreadable_object_is_not_asked_for_again() -> None:
    odd = as_stored("odd", "11", labels=["no map"])
    server = OddServer(lists=[[]], watches=[[event("ADDED", odd)]])

    async with reflecting_odd(server):
        await until(lambda: len(server.asked) > 2, 10)

    assert ["LIST", "10", "11"] == server.asked[:3]


@pytest.mark.parametrize(
    "last_words",
    [
        pytest.param(b"<html>\n", id="no event"),
        pytest.param(event("RENAMED", as_stored("a", "11")), id="an unknown event"),
        pytest.param(event("ADDED", {"metadata": 1}), id="no object"),
        pytest.param(event("BOOKMARK", {}), id="no version"),
        pytest.param(event("ERROR", {"kind": "Status", "code": 400}), id="a refusal"),
    ],
)
async def test_a_watch_that_makes_no_sense_is_followed_by_a_list(last_words: bytes) -> None:
    server = OddServer(lists=[[]], watches=[[last_words]])

    async with reflecting_odd(server):
        await until(lambda: len(server.asked) > 2, 10)

    assert ["LIST", "10", "LIST"] == server.asked[:3]


async def test_a_server_error_is_no_reason_to_list_again() -> None:
    busy = {"kind": "Status", "code": 500, "reason": "InternalError"}
    first = event("ADDED", as_stored("a", "11"))
    server = OddServer(lists=[[]], watches=[[first, event("ERROR", busy)]])

    async with reflecting_odd(server):
        await until(lambda: len(server.asked) > 2, 10)

    assert ["LIST", "10", "11"] == server.asked[:3]


@pytest.mark.parametrize(
    "words",
    [
        pytest.param([], id="hangs up"),
        pytest.param([event("ERROR", {"kind": "Status", "code": 403})], id="refuses"),
    ],
)
async def test_a_server_that_lists_but_does_not_let_us_watch_is_not_asked_in_a_circle(
    words: list[bytes],
) -> None:
    server = OddServer(lists=[[]], watches=[words] * 100)
    with capture_logs() as logs:
        async with reflecting_odd(server):
            await until(lambda: server.asked.count("10") > 5, 10)

    pauses = [e["retry_in_s"] for e in logs if e["event"] == "reflector.interrupted"]
    assert 3 * pauses[0] < pauses[-1] <= HASTY.longest_pause.total_seconds()
