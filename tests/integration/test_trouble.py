"""Slurm or the API server is away, hangs, or refuses us: pods stay as they are, and all goes on by itself afterwards."""

from datetime import timedelta

import pytest

from sandbox.api import ApiError
from sandbox.client import Sandbox
from sandbox.slurm_rest import TOKEN_LIFETIME
from slurmruntime.process.clock import SystemClock
from tests.integration.residents import (
    Residents,
    are_ready,
    await_unready,
    await_words,
    log_length,
    readiness,
)
from tests.integration.worlds import Worlds, is_gated, is_released, played
from tests.servers import wait_until


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
    wait_until(lambda: are_ready(full_sandbox), 60, sandbox=full_sandbox)


def test_slurmrestd_hangs_and_then_does_what_nobody_waits_for_any_more(
    worlds: Worlds, residents: Residents, full_sandbox: Sandbox
) -> None:
    since = log_length(full_sandbox)
    full_sandbox.pause("slurmrestd")
    try:
        comes = worlds.submit("comes", annotations=played(seconds=1))
        await_words(full_sandbox, "no response from slurmrestd", since=since)
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


def test_slurmctld_hangs(worlds: Worlds, residents: Residents, full_sandbox: Sandbox) -> None:
    ends = worlds.submit("ends", annotations=played(seconds=1))
    worlds.await_phase("ends", "Running")
    full_sandbox.pause("slurmctld")
    try:
        comes = worlds.submit("comes", annotations=played(seconds=1))
        await_unready(full_sandbox, "no news of Slurm for")
        assert is_gated(worlds.await_pod("comes", bool))
        assert "Running" == residents.worlds.await_pod("runs", bool)["status"]["phase"]
    finally:
        full_sandbox.resume("slurmctld")

    assert "COMPLETED" == worlds.await_accounted(ends, 90).state
    assert "COMPLETED" == worlds.await_accounted(comes, 90).state
    assert residents.are_as_they_were()
    wait_until(lambda: are_ready(full_sandbox), 60, sandbox=full_sandbox)


def test_etcd_hangs_until_every_leader_has_lost_its_lease(
    worlds: Worlds, residents: Residents, full_sandbox: Sandbox
) -> None:
    controllers = full_sandbox.instance.log("controllers")
    since = controllers.stat().st_size
    runs = worlds.submit("runs", annotations=played(seconds=2))
    worlds.await_phase("runs", "Running")

    full_sandbox.pause("etcd")
    try:
        wait_until(
            lambda: b"lease.lost" in controllers.read_bytes()[since:], 60, sandbox=full_sandbox
        )
    finally:
        full_sandbox.resume("etcd")

    assert "COMPLETED" == worlds.await_accounted(runs, 90).state
    comes = worlds.submit("comes", annotations=played(seconds=1))
    assert "COMPLETED" == worlds.await_accounted(comes, 90).state
    assert residents.are_as_they_were()
    wait_until(lambda: are_ready(full_sandbox), 60, sandbox=full_sandbox)


def test_the_webhook_is_down(
    worlds: Worlds, elsewhere: Worlds, residents: Residents, full_sandbox: Sandbox
) -> None:
    """Nothing gets past it, and nobody else notices."""
    full_sandbox.stop("webhook")
    try:
        with pytest.raises(ApiError, match="webhook") as refusal:
            worlds.submit("refused")
        assert 500 == refusal.value.status
        assert worlds.pod("refused") is None
        elsewhere.submit("passes")
        elsewhere.await_phase("passes", "Running")
        worlds.scontrol("release", str(residents.jobs["waits"]))
        residents.worlds.await_phase("waits", "Running")
        for service in ("extender", "controllers"):
            wrong = [
                line for line in readiness(full_sandbox, service).text.splitlines() if "[-]" in line
            ]
            assert all(line.startswith("[-] webhook:") for line in wrong), wrong
    finally:
        full_sandbox.start("webhook")

    comes = worlds.submit("comes", annotations=played(seconds=1))
    assert "COMPLETED" == worlds.await_accounted(comes).state
