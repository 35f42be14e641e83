"""Slurm or the API server is away, hangs, or refuses us: pods stay as they are, and all goes on by itself afterwards."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import httpx
import pytest

from bridge.domain import names
from bridge.runtime.clock import SystemClock
from sandbox.client import Sandbox
from sandbox.slurm_rest import TOKEN_LIFETIME
from tests.integration.worlds import Worlds, is_gated, is_released, played
from tests.servers import fresh_namespace, wait_until

_UNREADY_WITHIN_S = 40.0
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


@pytest.fixture(scope="module")
def residents(full_sandbox: Sandbox) -> Iterator[Residents]:
    with fresh_namespace(full_sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        worlds = Worlds(full_sandbox, name)
        held = {"slurmjob.slinky.slurm.net/hold": "true"}
        uids = {"runs": worlds.submit("runs"), "waits": worlds.submit("waits", annotations=held)}
        worlds.await_phase("runs", "Running")
        jobs = {name: worlds.await_live(uid).id for name, uid in uids.items()}
        yield Residents(worlds, uids, jobs)
        worlds.clear()


def await_words(sandbox: Sandbox, words: str, *, since: int) -> None:
    """The extender's log says so, after its first `since` bytes."""
    log = sandbox.instance.log("extender")
    wait_until(lambda: words.encode() in log.read_bytes()[since:], 30, sandbox=sandbox)


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


def test_slurmrestd_is_away_while_pods_come_and_end(
    worlds: Worlds, residents: Residents, full_sandbox: Sandbox
) -> None:
    ends = worlds.submit("ends", annotations=played(seconds=1))
    worlds.await_phase("ends", "Running")
    full_sandbox.stop("slurmrestd")
    try:
        comes = worlds.submit("comes", annotations=played(seconds=1))
        worlds.await_phase("ends", "Succeeded")
        await_unready(full_sandbox, "no news of Slurm for")
        assert not is_released(worlds.await_pod("ends", bool))
        assert is_gated(worlds.await_pod("comes", bool))
        assert residents.are_as_they_were()
    finally:
        full_sandbox.start("slurmrestd")

    assert "COMPLETED" == worlds.await_accounted(ends).state
    assert "COMPLETED" == worlds.await_accounted(comes).state
    assert residents.are_as_they_were()
    wait_until(lambda: are_ready(full_sandbox), 10, sandbox=full_sandbox)


def test_slurmrestd_hangs_and_then_does_what_nobody_waits_for_any_more(
    worlds: Worlds, residents: Residents, full_sandbox: Sandbox
) -> None:
    since = log_length(full_sandbox)
    full_sandbox.pause("slurmrestd")
    try:
        comes = worlds.submit("comes", annotations=played(seconds=1))
        await_words(full_sandbox, "job.submit: no answer from slurmrestd", since=since)
        assert is_gated(worlds.await_pod("comes", bool))
    finally:
        full_sandbox.resume("slurmrestd")

    assert "COMPLETED" == worlds.await_accounted(comes).state
    assert residents.are_as_they_were()


def test_the_token_expires_and_is_renewed(
    worlds: Worlds, residents: Residents, full_sandbox: Sandbox
) -> None:
    file = full_sandbox.token_file
    good, since = file.read_text(), log_length(full_sandbox)
    long_ago = SystemClock().now() - TOKEN_LIFETIME - timedelta(days=1)
    file.write_text(full_sandbox.token(now=long_ago))
    try:
        comes = worlds.submit("comes", annotations=played(seconds=1))
        await_words(full_sandbox, "renew the token in slurm.token_file", since=since)
        assert is_gated(worlds.await_pod("comes", bool))
    finally:
        file.write_text(good)

    assert "COMPLETED" == worlds.await_accounted(comes).state
    assert residents.are_as_they_were()


@pytest.mark.parametrize("signal", ["TERM", "KILL"])
def test_slurmctld_is_restarted(
    worlds: Worlds, residents: Residents, full_sandbox: Sandbox, signal: str
) -> None:
    full_sandbox.restart("slurmctld", signal=signal)

    uid = worlds.submit("comes", annotations=played(seconds=1))

    assert "COMPLETED" == worlds.await_accounted(uid).state
    assert residents.are_as_they_were()


def test_the_api_server_is_restarted(
    worlds: Worlds, residents: Residents, full_sandbox: Sandbox
) -> None:
    runs = worlds.submit("runs", annotations=played(seconds=3))
    worlds.await_phase("runs", "Running")

    full_sandbox.restart("apiserver", signal="KILL")

    comes = worlds.submit("comes", annotations=played(seconds=1))
    for uid in (runs, comes):
        assert "COMPLETED" == worlds.await_accounted(uid).state
    assert residents.are_as_they_were()
