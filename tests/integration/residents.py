"""Pods that live through all trouble, and what our services say of it meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.integration.worlds import Worlds, is_gated
from tests.servers import fresh_namespace, wait_until

_UNREADY_WITHIN_S = 60.0
"""15 s without news, and up to 10 s for a request that hangs."""


@dataclass(frozen=True, slots=True)
class Residents:
    """Two pods that live through all of it: one runs, one waits."""

    worlds: Worlds
    uids: dict[str, str]
    jobs: dict[str, int]

    def are_as_they_were(self) -> bool:
        """The same pods, in the same state, with the same placeholders."""
        runs, waits = (self.worlds.await_pod(name, bool) for name in ("runs", "waits"))
        assert (self.uids["runs"], "Running") == (runs["metadata"]["uid"], runs["status"]["phase"])
        assert "deletionTimestamp" not in runs["metadata"]
        assert (self.uids["waits"], True) == (waits["metadata"]["uid"], is_gated(waits))
        for name, uid in self.uids.items():
            assert [self.jobs[name]] == [job.id for job in self.worlds.jobs(uid)]
        return True


@contextmanager
def moved_in(sandbox: Sandbox) -> Iterator[Residents]:
    """Both live in a namespace of their own."""
    with fresh_namespace(sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        worlds = Worlds(sandbox, name)
        held = {"slurmjob.slinky.slurm.net/hold": "true"}
        try:
            uids = {
                "runs": worlds.submit("runs"),
                "waits": worlds.submit("waits", annotations=held),
            }
            worlds.await_phase("runs", "Running")
            jobs = {name: worlds.await_live(uid).id for name, uid in uids.items()}
            yield Residents(worlds, uids, jobs)
        finally:
            worlds.clear()


def await_words(sandbox: Sandbox, words: str, *, since: int) -> None:
    """The extender's log says so, after its first `since` bytes."""
    log = sandbox.instance.log("extender")
    wait_until(lambda: words.encode() in log.read_bytes()[since:], 60, sandbox=sandbox)


def log_length(sandbox: Sandbox) -> int:
    return sandbox.instance.log("extender").stat().st_size


def readiness(sandbox: Sandbox, service: str) -> httpx.Response:
    return httpx.get(f"{sandbox.instance.url(f'{service}-health')}/readyz", trust_env=False)


def await_unready(sandbox: Sandbox, says: str) -> None:
    """Both services that speak to Slurm say what is wrong."""
    for service in ("extender", "controllers"):

        def is_unready(service: str = service) -> bool:
            answer = readiness(sandbox, service)
            return answer.status_code == 503 and says in answer.text

        wait_until(is_unready, _UNREADY_WITHIN_S, sandbox=sandbox)


def are_ready(sandbox: Sandbox) -> bool:
    return all(readiness(sandbox, service).is_success for service in ("extender", "controllers"))


def snapshot_age_s(sandbox: Sandbox, service: str) -> float:
    """What the metric says of the age of a service's picture of Slurm."""
    lines = httpx.get(f"{sandbox.instance.url(f'{service}-health')}/metrics", trust_env=False).text
    name = "slurm_bridge_snapshot_age_seconds "
    return float(next(line for line in lines.splitlines() if line.startswith(name)).split()[1])
