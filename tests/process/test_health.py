import pytest

from bridge.process import health
from bridge.process.health import Health
from bridge.process.metrics import Metrics
from tests.make.peers import serving, talk


async def test_ready_as_long_as_every_check_is_content() -> None:
    """The answer lists each check, so that an operator sees at once what is missing."""
    trouble: str | None = None
    checks = Health()
    checks.register("kubernetes", lambda: None)
    checks.register("slurm", lambda: trouble)
    async with serving(health.app(checks, Metrics("test"))) as address:
        good = await talk(address, lambda peer: peer.ask("GET", "/readyz"))
        trouble = "no news of Slurm for 31 s: connection refused"
        bad = await talk(address, lambda peer: peer.ask("GET", "/readyz"))
        live = await talk(address, lambda peer: peer.ask("GET", "/livez"))

    assert (200, b"[+] kubernetes: ok\n[+] slurm: ok\n") == (good.status, good.body)
    assert 503 == bad.status
    assert f"[+] kubernetes: ok\n[-] slurm: {trouble}\n" == bad.body.decode()
    assert 200 == live.status


async def test_metrics_are_served_as_prometheus_wants_them() -> None:
    metrics = Metrics("test")
    metrics.decided("Submit")
    async with serving(health.app(Health(), metrics)) as address:
        answer = await talk(address, lambda peer: peer.ask("GET", "/metrics"))

    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert b'slurm_bridge_decisions_total{action="Submit"} 1.0\n' in answer.body


async def test_anything_else_is_not_found() -> None:
    async with serving(health.app(Health(), Metrics("test"))) as address:
        answer = await talk(address, lambda peer: peer.ask("GET", "/"))

    assert 404 == answer.status


def test_two_checks_cannot_have_one_name() -> None:
    checks = Health()
    checks.register("slurm", lambda: None)
    with pytest.raises(ValueError, match="'slurm' is registered already"):
        checks.register("slurm", lambda: None)
