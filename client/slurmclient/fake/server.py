"""The HTTP server of `FakeSlurm`: requests, tokens, faults.

async with FakeSlurm(nodes=4) as fake, Client(fake.url, token="any") as slurm:
    job = await slurm.jobs.submit(name="mine")
    fake.end(job.job_id, "FAILED", exit_code=3)
    fake.fail_next("slurm_post_job", LOST_REPLY)

It serves jobs, nodes, partitions, ping and diag in every version of the API; all other paths are
unknown. It passes the tests that the real slurmrestd passes. `cluster` describes how its jobs behave.
"""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Self

import msgspec
from aiohttp import web

from slurmclient.api.operation import VERSIONS, parser
from slurmclient.api.operations import OPERATIONS
from slurmclient.fake.cluster import FakeCluster
from slurmclient.fake.requests import WORDS, FakeRequest, Fault, Refused

CLUSTER: Final = "fake"
RELEASE: Final = "26.05.5"
_LITERAL_FIRST: Final = sorted(OPERATIONS.values(), key=lambda operation: operation.path.count("{"))
"""The operations in an order that tries `/job/submit` before `/job/{job_id}`."""


class FakeSlurm(FakeCluster):
    """A Slurm in this process, over real HTTP; use it as `async with`.

    Its methods do what Slurm would do by itself: `end`, `forget`, `restart`.
    """

    def __init__(
        self,
        *,
        nodes: int = 4,
        cpus: int = 8,
        clock: Callable[[], float] = time.time,  # noqa: TID251  # the default clock of a library
    ) -> None:
        """Start with idle nodes `node-0`, `node-1` and so on; `clock` returns seconds since 1970."""
        super().__init__(nodes=nodes, cpus=cpus, clock=clock)
        self._faults: list[tuple[str, Fault]] = []
        self._late: list[Callable[[], object]] = []
        self._runner: web.ServerRunner | None = None
        self.url = ""
        """The address to give to a client."""
        self.calls: list[tuple[str, str]] = []
        """Every operation requested so far, with the user."""

    async def __aenter__(self) -> Self:
        self._runner = web.ServerRunner(web.Server(self._serve))
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def fail_next(self, operation: str, fault: Fault, *, times: int = 1) -> None:
        """Apply a fault to the next requests of an operation, such as `slurm_post_job_submit`; "" for any."""
        self._faults += [(operation, fault)] * times

    def deliver(self) -> None:
        """Carry out the requests held back by LATE, in order; ignore those refused by now."""
        late, self._late = self._late, []
        for do in late:
            with contextlib.suppress(Refused):
                do()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        name, parts = _operation(request.method, request.path)
        do = getattr(self, name, None) if name else None
        if do is None:
            return web.Response(
                status=404, text="Unable find requested URL. Please view /openapi/v3"
            )
        token = request.headers.get("X-SLURM-USER-TOKEN", "")
        user = request.headers.get("X-SLURM-USER-NAME", "root")
        self.calls.append((name, user))
        fault = self._fault(name)
        if not token:
            return web.Response(status=401, text="Authentication failure")
        if fault is Fault.DOWN and name != "slurm_get_ping":
            return self._answer({}, Refused(1800, status=502))
        if fault is Fault.LOST_REQUEST:
            return _broken(request)
        try:
            body = await request.read()
            content = msgspec.json.decode(body) if body else {}
            query = {key: request.query.getall(key) for key in request.query}
            fake_request = FakeRequest(parts, content, query, user)
            if fault is Fault.LATE:
                self._late.append(functools.partial(do, fake_request))
                return _broken(request)
            answer, refused = do(fake_request), None
        except Refused as error:
            answer, refused = {}, error
        if fault is Fault.LOST_REPLY:
            return _broken(request)
        return self._answer(answer, refused)

    def _fault(self, name: str) -> Fault | None:
        for index, (operation, fault) in enumerate(self._faults):
            if operation in {"", name}:
                del self._faults[index]
                return fault
        return None

    def _answer(self, answer: Mapping[str, object], refused: Refused | None) -> web.Response:
        major, minor, micro = RELEASE.split(".")
        version = {"major": major, "minor": minor, "micro": micro}
        errors = []
        if refused is not None:
            words = WORDS[refused.number]
            errors = [
                {
                    "description": words,
                    "error_number": refused.number,
                    "error": words,
                    "source": "fake",
                }
            ]
        content = {
            **answer,
            "meta": {"slurm": {"version": version, "release": RELEASE, "cluster": CLUSTER}},
            "errors": errors,
            "warnings": answer.get("warnings", []),
        }
        return web.Response(
            status=refused.status if refused else 200,
            body=msgspec.json.encode(content),
            content_type="application/json",
        )


def _operation(method: str, path: str) -> tuple[str, dict[str, str]]:
    """Return the operation of a path with its parameters; "" if there is none."""
    path_parts = path.strip("/").split("/")
    for candidate in _LITERAL_FIRST:
        pattern = candidate.path.strip("/").split("/")
        if candidate.method == method and len(pattern) == len(path_parts):
            parts = dict(_matched(pattern, path_parts))
            versions = map(parser, range(candidate.since, max(VERSIONS) + 1))
            if len(parts) == len(pattern) and parts["{version}"] in versions:
                return candidate.name, {key.strip("{}"): value for key, value in parts.items()}
    return "", {}


def _matched(pattern: list[str], path_parts: list[str]) -> Iterator[tuple[str, str]]:
    for want, have in zip(pattern, path_parts, strict=True):
        if want.startswith("{") or want == have:
            yield want, have


def _broken(request: web.BaseRequest) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
