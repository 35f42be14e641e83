"""What a command costs is nearly all importing: these load what they need, and nothing that serves others."""

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sandbox import pki
from tests.slurmcli.conftest import EXPENSIVE

MOST = {"why": 474, "queue": 432, "nodes": 436}
"""Modules, including Python's own: if a command needs more, say here why. The last rise was for slurmruntime.values.part, which leaves lists undecoded that are longer than honest ones."""

_SHOW = "import sys; from slurmcli import plugin; {}; print(*sys.modules)"


@pytest.mark.parametrize("command", ["why", "queue", "nodes"])
def test_a_command_loads_only_what_it_needs(command: str) -> None:
    loaded = modules_of(f"plugin.app([{command!r}])")

    assert [] == [name for name in EXPENSIVE if name in loaded]
    assert f"slurmcli.{command}" in loaded


@pytest.mark.parametrize("command", MOST)
def test_a_command_loads_no_more_modules_than_it_did(command: str) -> None:
    assert len(modules_of(f"plugin._command({command!r})")) <= MOST[command]


def test_aiohttp_does_not_read_the_systems_cas_and_slurms_side_still_trusts_them(
    tmp_path: Path,
) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_bytes(pki.authority(datetime.now(UTC)).certificate)  # noqa: TID251  # real TLS
    script = (
        "from slurmcli import plugin; plugin._command('queue'); import os, slurmclient; from aiohttp import"
        " connector; print(connector._SSL_CONTEXT_VERIFIED.cert_store_stats()['x509'],"
        " slurmclient.Tls().context.cert_store_stats()['x509'], os.environ['SSL_CERT_FILE'], 'SSL_CERT_DIR' in os.environ)"
    )
    environment = {**os.environ, "SSL_CERT_FILE": str(ca)}
    environment.pop("SSL_CERT_DIR", None)

    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, env=environment
    )

    assert ["0", "1", str(ca), "False"] == done.stdout.split()


def test_a_kubeconfig_with_certificates_needs_no_library() -> None:
    loaded = modules_of("from slurmruntime.kube.kubeconfig import credentials")

    assert "kubernetes_asyncio" not in loaded


def modules_of(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", _SHOW.format(statement)], check=True, capture_output=True, text=True
    )
    return set(done.stdout.split())
