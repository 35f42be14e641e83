"""What a command costs is nearly all importing: these load what they need, and nothing that serves others."""

import subprocess
import sys

import pytest

from tests.commands.conftest import EXPENSIVE

_SHOW = "import sys; from bridge.commands import plugin; {}; print(*sys.modules)"


@pytest.mark.parametrize("command", ["why", "queue", "nodes"])
def test_a_command_loads_only_what_it_needs(command: str) -> None:
    loaded = modules_of(f"plugin.app([{command!r}])")

    assert [] == [name for name in EXPENSIVE if name in loaded]
    assert f"bridge.commands.{command}" in loaded


def test_a_kubeconfig_with_certificates_needs_no_library() -> None:
    loaded = modules_of("from bridge.kube.connecting import credentials")

    assert "kubernetes_asyncio" not in loaded


def modules_of(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", _SHOW.format(statement)], check=True, capture_output=True, text=True
    )
    return set(done.stdout.split())
