"""What keeps too many pods from being evicted at once, as an operator meets it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from sandbox.client import Sandbox
from tests.integration.residents import snapshot_age_s
from tests.integration.worlds import PATIENCE_S, Worlds
from tests.servers import wait_until


def await_read(worlds: Worlds, *pods: str) -> None:
    """They run, and the controllers have read their jobs since.

    Of jobs that are cancelled while they are read for the first time, some are seen a reading earlier, and few may go.
    """
    for pod in pods:
        worlds.await_phase(pod, "Running")
    since_s = time.monotonic() + 1.0  # so old may be what a metric says
    wait_until(
        lambda: snapshot_age_s(worlds.sandbox, "controllers") < time.monotonic() - since_s,
        PATIENCE_S,
        sandbox=worlds.sandbox,
    )


@contextmanager
def evictions_allowed(sandbox: Sandbox) -> Iterator[None]:
    """What the log and readiness tell an operator to do; it is taken back at the end."""
    answer = httpx.get(f"{sandbox.instance.url('controllers-health')}/readyz", trust_env=False)
    _, _, advice = answer.text.partition("kubectl ")
    *annotate, permission = advice.splitlines()[0].split()
    sandbox.kubectl(*annotate, permission)
    try:
        yield
    finally:
        sandbox.kubectl(*annotate, f"{permission.partition('=')[0]}-")
        # Withdrawn while nothing is held back: it is heard all the same.
        wait_until(lambda: is_heard(sandbox, "evictions.permission_ended"), 30, sandbox=sandbox)


def is_heard(sandbox: Sandbox, event: str) -> bool:
    """Whether the controllers' log has the event."""
    return event in sandbox.instance.log("controllers").read_text()


def await_readiness(sandbox: Sandbox, status: int, says: str) -> None:
    """Wait until the controllers are ready, or not, and say why."""
    url = f"{sandbox.instance.url('controllers-health')}/readyz"

    def says_so() -> bool:
        try:
            answer = httpx.get(url, trust_env=False)
        except httpx.TransportError:
            return False  # it is just being restarted
        return answer.status_code == status and says in answer.text

    wait_until(says_so, 60, sandbox=sandbox)
