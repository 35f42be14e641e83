"""A real Prometheus scrapes slurm-exporter by TLS: with a password, with a token, and with a client certificate."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.exporter.doors import HASHED, MUTUAL, TLS, TOKEN, Door, door
from tests.prometheus import scraping
from tests.servers import until


@contextmanager
def scraping_door(program: Path, opened: Door, folder: Path, **scrape: object) -> Iterator[str]:
    """A Prometheus that scrapes the exporter by TLS; its URL."""
    target = {
        "job_name": "slurm",
        "scheme": "https",
        "static_configs": [{"targets": [f"127.0.0.1:{opened.port}"]}],
        **scrape,
    }
    with scraping(program / "prometheus", [target], folder) as url:
        yield url


def health(url: str) -> tuple[str, str]:
    """Whether the last scrape succeeded, and its error."""
    try:
        answer = httpx.get(f"{url}/api/v1/targets", trust_env=False)
    except httpx.TransportError:
        return "", ""
    targets = answer.json()["data"]["activeTargets"] if answer.is_success else []
    return (targets[0]["health"], targets[0]["lastError"]) if targets else ("", "")


@pytest.mark.parametrize("kind", ["password", "token", "certificate"])
async def test_prometheus_scrapes_by_tls(prometheus: Path, tmp_path: Path, kind: str) -> None:
    ca = {"ca_file": str(tmp_path / "ca.crt")}
    kinds: Mapping[str, tuple[dict[str, object], dict[str, object]]] = {
        "password": (
            {"tls_server_config": TLS, "basic_auth_users": {"alice": HASHED}},
            {"basic_auth": {"username": "alice", "password": "secret"}, "tls_config": ca},
        ),
        "token": (
            {"tls_server_config": TLS, "bearer_token_file": "token"},
            {"authorization": {"credentials": TOKEN}, "tls_config": ca},
        ),
        "certificate": (
            {"tls_server_config": MUTUAL},
            {
                "tls_config": {
                    **ca,
                    "cert_file": str(tmp_path / "client.crt"),
                    "key_file": str(tmp_path / "client.key"),
                }
            },
        ),
    }
    sections, scrape = kinds[kind]
    with door(tmp_path, **sections) as opened:
        opened.authority.issue("prometheus").write(tmp_path, "client")
        with scraping_door(prometheus, opened, tmp_path, **scrape) as url:
            await until(lambda: health(url) == ("up", ""), 30)
        with scraping_door(prometheus, opened, tmp_path, tls_config=ca) as url:
            await until(lambda: health(url)[0] == "down", 30)
            error = health(url)[1]
            assert ("401" in error) == (kind != "certificate"), error
