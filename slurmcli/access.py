"""The clients of a command: the API server through a kubeconfig, and Slurm if there is a token for it.

Without Slurm every command still shows what Kubernetes knows; `--slurm-url` and
`--slurm-token-file`, or the variables that Slurm's own tools use, add the other half.
"""

import asyncio
import contextlib
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from bridge import __version__
from bridge.domain.diagnosis.queue import QueuedJob
from bridge.slurm import queue
from slurmcli import output
from slurmcli.line.options import Way
from slurmclient.errors import SlurmError
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.errors import ConfigurationError
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.errors import PEER_ERRORS

if TYPE_CHECKING:
    from slurmruntime.model.nodes import SlurmNodeFacts

_TIMEOUT_S = 10.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The open clients."""

    kube: KubeClient
    slurm: SlurmClient | None
    """None without a token for Slurm."""

    async def queue(self) -> tuple[QueuedJob, ...] | None:
        """Read all Slurm jobs; None, with a warning, if there is no token or Slurm does not answer.

        Half an answer is better than none: what Kubernetes knows is shown regardless.
        """
        if self.slurm is None:
            return None
        return await _or_none(queue.listing(self.slurm, on_unreadable=_warn))

    async def slurm_nodes(self) -> "tuple[SlurmNodeFacts, ...] | None":
        """Read all Slurm nodes; None as above."""
        from bridge.slurm import nodes  # noqa: PLC0415  # 20 ms that only `nodes` and `doctor` need

        return None if self.slurm is None else await _or_none(nodes.listing(self.slurm))


@contextlib.asynccontextmanager
async def _open(way: Way) -> AsyncIterator[Access]:
    async with contextlib.AsyncExitStack() as stack:
        kube = await stack.enter_async_context(
            KubeClient.open(
                way.kubeconfig_file,
                request_timeout_s=_TIMEOUT_S,
                user_agent=f"slurm-bridge-cli/{__version__}",
            )
        )
        token = way.slurm_token_file or stack.enter_context(_token_of_the_environment())
        slurm = None
        urls = [url for part in way.slurm_url.split(",") if (url := part.strip())]
        if urls and token:
            slurm = await stack.enter_async_context(
                SlurmClient.open(urls, token_file=token, request_timeout_s=_TIMEOUT_S)
            )
        yield Access(kube=kube, slurm=slurm)


def run(way: Way, ask: Callable[[Access], Awaitable[T]]) -> T:
    """Query both systems; an error is one line on standard error and exit code 1."""

    async def query() -> T:
        async with _open(way) as access:
            return await ask(access)

    try:
        return asyncio.run(query())
    except (*PEER_ERRORS, ConfigurationError) as error:
        output.say(f"error: {error}")
        sys.exit(1)


def _warn(why: str) -> None:
    output.say(f"warning: left out: {why}")


async def _or_none(answer: Awaitable[T]) -> T | None:
    try:
        return await answer
    except SlurmError as error:
        output.say(f"warning: Slurm's side is missing: {error}")
        return None


@contextlib.contextmanager
def _token_of_the_environment() -> Iterator[str]:
    """Put SLURM_JWT into a private file: the client reads tokens only from files."""
    token = os.environ.get("SLURM_JWT", "")
    if not token:
        yield ""
        return
    with tempfile.NamedTemporaryFile("w", prefix="slurm-token-") as file:
        file.write(token)
        file.flush()
        yield file.name
