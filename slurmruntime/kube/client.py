"""Requests to the API server: one session, raw bodies in and out, errors translated.

kubernetes_asyncio reads what a kubeconfig may contain besides certificates and tokens. Its models,
watch and REST layer are not used (measured: 2 ms per pod, 410 mishandled, bodies in debug logs). Nothing is
retried here except a request that got 401 while the token was being renewed; the API server certainly did not
act on it.

`asyncio.timeout` bounds a request, not aiohttp's `total`, which nests two timers that both
uncancel the task. If it expires in the same loop iteration in which the task is cancelled, the
cancellation is lost and the caller runs on forever.
"""

import asyncio
import copy
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from http import HTTPStatus
from types import MappingProxyType
from typing import Self

import aiohttp
import msgspec
from yarl import URL

from slurmclient.transport import connection
from slurmruntime.kube import errors
from slurmruntime.kube.kubeconfig.credentials import Credentials

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
"""Server-side apply; the body is JSON, which is YAML as well."""
METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""`Accept` value that makes the API server return metadata only."""
METADATA_ONLY_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""`METADATA_ONLY` for a list."""

OnCall = Callable[[str, float, str], None]
"""Called after every request with its operation (`PATCH pods/status`, `LIST nodes`), its duration
in seconds and its outcome (`ok`, an error's `outcome`, `cancelled`)."""

REQUEST_TIMEOUT_S = 10.0
"""For a request that is no watch: a healthy API server answers within one second (Kubernetes' own service level)."""

_KEEP_ALIVE_S = 75
"""The API server closes idle connections after 90 s. We close first, so none breaks mid-request."""

_NO_LIMITS = aiohttp.ClientTimeout(total=None)

_NO_ANSWER = (aiohttp.ClientError, OSError)  # TimeoutError is an OSError

NO_PARAMS: Mapping[str, str] = MappingProxyType({})


def ignore_call(operation: str, seconds: float, outcome: str) -> None:
    """Do nothing; for programs without metrics."""


class KubeClient:
    """Client of the API server with one set of credentials; create one with `KubeClient.open`."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        credentials: Credentials,
        *,
        request_timeout_s: float,
        on_call: OnCall = ignore_call,
    ) -> None:
        self._session = session
        self._credentials = credentials
        self._timeout_s = request_timeout_s
        self._on_call = on_call
        self._acts_as = ""

    def acting_as(self, user: str) -> Self:
        """Return a client that impersonates another user over the same connections, if RBAC allows that."""
        other = copy.copy(self)
        other._acts_as = user  # noqa: SLF001  # of the same class
        return other

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        kubeconfig: str | Credentials,
        *,
        request_timeout_s: float = REQUEST_TIMEOUT_S,
        user_agent: str,
        connections: int = 64,
        on_call: OnCall = ignore_call,
    ) -> AsyncIterator[Self]:
        """Open the session; it is closed at the end of the block.

        Args:
            kubeconfig: its path, "" for the service account of our pod, or credentials already loaded.
            request_timeout_s: for a whole request, including the wait for a free connection and
                for credentials; for a watch, to connect.
            user_agent: our name in audit logs and `managedFields`; the part before the first "/"
                is the field manager.
            connections: maximum number of concurrent connections; each watch holds one.

        Raises:
            ConfigurationError: the kubeconfig or the service account's files are missing or
                invalid.
        """
        credentials = (
            await Credentials.load(kubeconfig) if isinstance(kubeconfig, str) else kubeconfig
        )
        # No compression: the event loop's CPU is scarcer than the network to the API server. What is compressed all the
        # same is not expanded, and no cookie is sent back.
        headers = {"User-Agent": user_agent, "Accept-Encoding": "identity"}
        pool = aiohttp.TCPConnector(limit=connections, keepalive_timeout=_KEEP_ALIVE_S)
        connection.fill(pool, connection.StrictConnection)
        async with aiohttp.ClientSession(
            connector=pool,
            headers=headers,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        ) as session:
            yield cls(session, credentials, request_timeout_s=request_timeout_s, on_call=on_call)

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        content_type: str = JSON,
        params: Mapping[str, str] = NO_PARAMS,
        accept: str = JSON,
    ) -> bytes:
        """Send one request and return the response body.

        Args:
            path: built with `slurmruntime.kube.paths` if it contains names.
            body: anything msgspec can encode as JSON; None for no body.

        Raises:
            KubeError: there was no response, or its status is not 2xx.
        """
        headers = {"Accept": accept}
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = msgspec.json.encode(body)
        with self._observed(method, path, params):
            async with asyncio.timeout(self._timeout_s):
                response = await self._send(
                    method, path, params=params, headers=headers, data=data, limits=_NO_LIMITS
                )
                async with response:
                    return await response.read()

    @asynccontextmanager
    async def stream(
        self, path: str, *, params: Mapping[str, str], idle_timeout_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a watch and yield its lines, of any length, without line ends.

        Args:
            idle_timeout_s: the connection counts as lost after this long without a byte.

        Raises:
            KubeError: on opening, there was no response or its status is not 2xx; while reading
                lines, `Unavailable` if the connection breaks.
        """
        params = {**params, "watch": "1"}
        limits = aiohttp.ClientTimeout(
            total=None, connect=self._timeout_s, sock_read=idle_timeout_s
        )
        async with AsyncExitStack() as stack:
            with self._observed("GET", path, params):
                response = await stack.enter_async_context(
                    await self._send(
                        "GET", path, params=params, headers={"Accept": JSON}, limits=limits
                    )
                )
            try:
                yield _lines(path, response.content.iter_any())
            finally:
                _abandon(response)

    async def _send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str],
        headers: dict[str, str],
        data: bytes | None = None,
        limits: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        """Send a request and return a 2xx response; retry a 401 once if the token is outdated."""
        async with asyncio.timeout(self._timeout_s):  # an exec plugin may have to run
            authorization = await self._credentials.authorization()
        if self._acts_as:
            headers["Impersonate-User"] = self._acts_as
        may_renew = True
        while True:
            connection = self._credentials.connection
            if authorization:
                headers["Authorization"] = authorization
            response = await self._session.request(
                method,
                URL(connection.server + path, encoded=True),
                params=params or None,
                data=data,
                headers=headers,
                timeout=limits,
                ssl=self._credentials.tls,  # a connection is only reused with the same context
                allow_redirects=False,
                proxy=connection.proxy,
                server_hostname=connection.server_name,
            )
            if response.status < HTTPStatus.MULTIPLE_CHOICES:
                return response
            async with response:
                answer = await response.read()
            status, retry_after = response.status, response.headers.get("Retry-After", "")
            if status == HTTPStatus.UNAUTHORIZED and may_renew:
                may_renew = False
                refused, authorization = authorization, await self._credentials.renewed()
                if authorization != refused:
                    continue
            raise errors.from_answer(method, path, status, answer, retry_after)

    @contextmanager
    def _observed(self, method: str, path: str, params: Mapping[str, str]) -> Iterator[None]:
        """Translate errors and report the call to `on_call`."""
        began = time.perf_counter()
        outcome = "ok"
        try:
            yield
        except errors.KubeError as error:
            outcome = error.outcome
            raise
        except _NO_ANSWER as error:
            outcome = errors.Unavailable.outcome
            raise _no_answer(method, path, error) from error
        except BaseException:
            outcome = "cancelled"
            raise
        finally:
            self._on_call(operation(method, path, params), time.perf_counter() - began, outcome)


def operation(method: str, path: str, params: Mapping[str, str] = NO_PARAMS) -> str:
    """Name a call for metrics, without object names: `LIST pods`, `PATCH pods/status`."""
    root, *parts = path.strip("/").split("/")
    parts = parts[1:] if root == "api" else parts[2:] if root == "apis" else []
    if not parts:
        return f"{method} /{root}"
    if parts[0] == "namespaces" and len(parts) > 2:  # noqa: PLR2004  # namespaces/NAME/resource
        parts = parts[2:]
    resource, name, *subresource = [*parts, ""] if len(parts) == 1 else parts
    if method == "GET" and not name:
        method = "WATCH" if "watch" in params else "LIST"
    return f"{method} {'/'.join([resource, *subresource])}"


async def _lines(path: str, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Split a stream into lines; aiohttp's own reader rejects lines longer than its buffer, and a pod may take 1.5 MB."""
    pending: list[bytes] = []
    try:
        async for chunk in chunks:
            *ends, rest = chunk.split(b"\n")
            for end in ends:
                pending.append(end)
                yield b"".join(pending)
                pending.clear()
            if rest:
                pending.append(rest)
    except _NO_ANSWER as error:
        raise _no_answer("WATCH", path, error) from error


def _abandon(response: aiohttp.ClientResponse) -> None:
    """Abort the connection of an unfinished stream instead of waiting for the TLS shutdown."""
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()


def _no_answer(method: str, path: str, error: Exception) -> errors.Unavailable:
    return errors.Unavailable(method, path, message=str(error) or type(error).__name__)
