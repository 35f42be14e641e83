"""The exporter's door, as those outside meet it: TLS, credentials, client certificates, and crowds that ask nothing."""

import base64
import os
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
import yaml

from slurmexporter.door import reception
from tests.exporter.conftest import command
from tests.exporter.doors import BEARERS, HASHED, MUTUAL, ROOT, TLS, TOKEN, door
from tests.make.certificates import Authority

CROWD = 1100


def basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


@pytest.mark.attack(
    "scrape slurm-exporter, and so learn who computes how much, without a credential",
    "TLS, passwords, tokens and client certificates by `--web-config-file`; users are named only with `--user-names`",
)
def test_without_a_credential_only_the_probes_are_answered(tmp_path: Path) -> None:
    with door(
        tmp_path,
        tls_server_config=TLS,
        basic_auth_users={"alice": HASHED},
        **BEARERS,
        http_server_config={"headers": {"X-Content-Type-Options": "nosniff"}},
    ) as opened:
        for path in ("/", "/metrics", "/metrics/own", "/metrics/exporter", "/nothing"):
            answer = opened.ask(path)
            assert 401 == answer.status_code, path
            assert 'Basic realm="slurm-exporter"' == answer.headers["WWW-Authenticate"]
            assert "nosniff" == answer.headers["X-Content-Type-Options"]
        for path in ("/livez", "/readyz", "/healthz"):
            assert (200, "ok\n") == (opened.ask(path).status_code, opened.ask(path).text)
        assert 401 == opened.ask(authorization=basic("alice", "wrong")).status_code
        assert 401 == opened.ask(authorization="Bearer wrong").status_code
        for shown in (basic("alice", "secret"), f"Bearer {TOKEN}"):
            answer = opened.ask(authorization=shown)
            assert 200 == answer.status_code
            assert "slurm_exporter_scrapes_total" in answer.text
        with pytest.raises(httpx.TransportError):
            opened.ask(tls=False)


def test_a_client_certificate_is_demanded_and_its_name_checked(tmp_path: Path) -> None:
    with door(
        tmp_path, tls_server_config={**MUTUAL, "client_allowed_sans": ["127.0.0.1"]}
    ) as opened:
        own = opened.authority.issue("prometheus").write(tmp_path, "client")
        assert 200 == opened.ask(own=own).status_code
        with pytest.raises(httpx.TransportError):
            opened.ask()
        with pytest.raises(httpx.TransportError):
            opened.ask(own=Authority().issue("stranger").write(tmp_path, "stranger"))
        (tmp_path / "web.yml").write_text(
            yaml.safe_dump({"tls_server_config": {**MUTUAL, "client_allowed_sans": ["other"]}})
        )
        deadline = time.monotonic() + 10
        while opened.ask(own=own).status_code != 403:
            assert time.monotonic() < deadline
            time.sleep(0.2)


def test_a_replaced_ca_counts_without_a_restart(tmp_path: Path) -> None:
    with door(tmp_path, tls_server_config=MUTUAL) as opened:
        own = opened.authority.issue("prometheus").write(tmp_path, "client")
        assert 200 == opened.ask(own=own).status_code
        (tmp_path / "ca.crt").write_bytes(Authority("other").certificate)
        deadline = time.monotonic() + 10
        while True:
            try:
                opened.ask(own=own)
            except httpx.TransportError:
                break
            assert time.monotonic() < deadline
            time.sleep(0.2)


@pytest.mark.attack(
    "hold 1100 idle or half connections to slurm-exporter, of 1024 files",
    "128 that have not asked, the oldest is closed for each new one; and 128 that have",
)
@pytest.mark.parametrize("kind", ["silent", "silent before TLS", "half a head", "asked once"])
def test_a_crowd_that_holds_connections_does_not_stop_scrapes(tmp_path: Path, kind: str) -> None:
    """N4: with 1000 of them, 0 of 5 scrapes were answered."""
    tls = kind == "silent before TLS"
    sections = {"tls_server_config": TLS} if tls else {}
    with door(tmp_path, **sections) as opened, ExitStack() as crowd:
        before_mib = opened.resident_mib()
        for _ in range(CROWD):
            one = crowd.enter_context(opened.connect())
            match kind:
                case "half a head":
                    one.sendall(b"GET /metrics HTTP/1.1\r\nA: " + b"a" * 4000)
                case "asked once":
                    one.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
                case _:
                    pass
        answers = [opened.ask(tls=tls).status_code for _ in range(5)]
        assert [200] * 5 == answers
        held = opened.files()
        assert held < reception.MOST_STRANGERS + reception.MOST_CALLERS + 50
        assert opened.resident_mib() < before_mib + 60


@pytest.mark.attack(
    "push admitted scrapers of slurm-exporter out by 1100 connections without a credential",
    "who was admitted is counted apart",
)
def test_who_has_no_credential_closes_no_admitted_connection(tmp_path: Path) -> None:
    with (
        door(tmp_path, **BEARERS) as opened,
        httpx.Client(
            base_url=f"http://127.0.0.1:{opened.port}",
            headers={"authorization": f"Bearer {TOKEN}"},
            trust_env=False,
            limits=httpx.Limits(keepalive_expiry=600),
        ) as client,
        ExitStack() as crowd,
    ):
        first = client.get("/metrics")
        peer = first.extensions["network_stream"].get_extra_info("client_addr")
        for number in range(CROWD):
            one = crowd.enter_context(opened.connect())
            if number % 2:
                one.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        last = client.get("/metrics")
        assert [200, 200] == [first.status_code, last.status_code]
        assert peer == last.extensions["network_stream"].get_extra_info("client_addr")


def test_a_head_that_never_ends_is_cut(tmp_path: Path) -> None:
    with door(tmp_path) as opened, opened.connect() as slow:
        slow.settimeout(reception.HEAD_S + 10)
        began = time.monotonic()
        slow.sendall(b"GET /metrics HTTP/1.1\r\nA: b")
        try:
            received = slow.recv(1)
        except ConnectionResetError:
            received = b""
        assert b"" == received
        assert time.monotonic() - began < reception.HEAD_S + 5


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "demands nothing"),
        ("rate_limit: {interval: 1s, burst: 2}\n", "rate_limit: not supported"),
        ("tls_server_config: {cert_file: none, key_file: none}\n", "No such file"),
    ],
)
@pytest.mark.parametrize("flag", ["--web.config.file", "--web-config-file"])
def test_an_exporter_with_a_file_that_it_cannot_use_does_not_start(
    tmp_path: Path, content: str, said: str, flag: str
) -> None:
    (tmp_path / "web.yml").write_text(content)
    done = subprocess.run(
        command(
            "--server=http://127.0.0.1:9", "--listen=127.0.0.1:0", f"{flag}={tmp_path}/web.yml"
        ),
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{ROOT / 'client'}:{ROOT / 'exporter'}",
            "SLURM_JWT": "a.b.c",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert 1 == done.returncode
    assert said in done.stderr
    assert "Traceback" not in done.stderr
