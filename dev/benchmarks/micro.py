"""One thing at a time.

The webhook and `filter` under a steady load, and the decoding of long lists.

Calls leave on a schedule, whether or not earlier ones have been answered, and a call's time counts
from the moment it was due: a server that stalls does not get fewer calls, and each of them shows
it.
"""

import asyncio
import json
import ssl
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from http import HTTPStatus
from operator import getitem
from pathlib import Path

import aiohttp
import msgspec

from benchmarks import meter
from benchmarks.results import Micro, spread
from sandbox.client import Sandbox
from sandbox.errors import SandboxError

ROOT = Path(__file__).parents[2]
WEBHOOK = "webhook alone"
FILTER = "filter alone"
CACHES = "decoding pods into the cache"

_CALLS_PER_S = 200
_LASTS_S = 10
_WARM_UP_CALLS = 50
_LISTED_PODS = 10_000
_REVIEW = ROOT / "tests" / "webhook" / "reviews" / "pod.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    url: str
    body: bytes
    part: tuple[str, ...]
    """The keys of the part of the answer that is checked."""
    expected: object
    """The value of that part."""

    def is_answered(self, answer: bytes) -> bool:
        """Return whether an answer is as expected."""
        return bool(self.expected == reduce(getitem, self.part, json.loads(answer)))


async def webhook(sandbox: Sandbox) -> Micro:
    """Measure the review of an ordinary pod's CREATE, over TLS."""
    url = sandbox.instance.url("webhook", "https")
    body = _REVIEW.read_bytes()
    review = _Call(url=f"{url}/mutate", body=body, part=("response", "allowed"), expected=True)
    return await _steady(sandbox, "webhook", [review])


async def filter_nodes(sandbox: Sandbox, pod: bytes) -> Micro:
    """Measure kube-scheduler's request for a placed pod, over TLS with its certificate."""
    node = json.loads(pod)["spec"]["nodeName"]
    body = b'{"Pod":%b,"Nodes":null,"NodeNames":[%b]}' % (pod, json.dumps(node).encode())
    url = sandbox.instance.url("extender", "https") + "/v1/filter"
    call = _Call(url=url, body=body, part=("NodeNames",), expected=[node])
    return await _steady(sandbox, "extender", [call])


def caches(pod: bytes) -> Micro:
    """Measure reading a long list of our pods into their cache, in a separate process."""
    done = subprocess.run(
        (sys.executable, "-m", "benchmarks.caches", str(_LISTED_PODS)),
        cwd=ROOT,
        input=pod,
        stdout=subprocess.PIPE,
        check=True,
    )
    return msgspec.json.decode(done.stdout, type=Micro)


async def _steady(sandbox: Sandbox, part: str, calls: Sequence[_Call]) -> Micro:
    """Call one of our services this many times a second."""
    pid = sandbox.status()[part].pid
    if pid is None:
        raise SandboxError(f"{part} is down")
    connector = aiohttp.TCPConnector(ssl=_as_scheduler(sandbox))
    async with aiohttp.ClientSession(
        connector=connector, headers={"Content-Type": "application/json"}
    ) as session:
        await _scheduled(session, calls, _WARM_UP_CALLS)
        before_s = meter.cpu_s(pid)
        count = _CALLS_PER_S * _LASTS_S
        took_s = await _scheduled(session, calls, count)
        used_s = meter.cpu_s(pid) - before_s
    return Micro(
        count=count,
        per_s=_CALLS_PER_S,
        cpu_ms=round(1000 * used_s / count, 3),
        spread=spread(took_s),
    )


async def _scheduled(
    session: aiohttp.ClientSession, calls: Sequence[_Call], count: int
) -> list[float]:
    """Send the calls when they are due; return how long each took from then."""
    began = time.perf_counter()  # the loop's own clock counts whole milliseconds
    took_s: list[float] = []

    async def send(call: _Call, due: float) -> None:
        async with session.post(call.url, data=call.body) as response:
            answer = await response.read()
        took_s.append(time.perf_counter() - due)
        if response.status != HTTPStatus.OK or not call.is_answered(answer):
            raise SandboxError(f"{call.url}: {response.status} {answer[:300].decode()}")

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            due = began + number / _CALLS_PER_S
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            group.create_task(send(calls[number % len(calls)], due))
    return took_s


def _as_scheduler(sandbox: Sandbox) -> ssl.SSLContext:
    """Return a context that trusts our services and has the only certificate the extender accepts."""
    bridge = sandbox.instance.bridge
    context = ssl.create_default_context(cafile=str(bridge / "serving-ca.crt"))
    scheduler = bridge / "scheduler"
    context.load_cert_chain(scheduler / "tls.crt", scheduler / "tls.key")
    return context
