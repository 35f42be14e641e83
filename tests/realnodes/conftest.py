"""Real nodes for tests: one sandbox with two of them, shared by all tests of this folder.

Who breaks a node puts it back. Without root, or on a machine that cannot run them, the tests are
skipped and say why.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.domain import names
from sandbox import assets, running
from sandbox.assembly import needed
from sandbox.client import Sandbox
from sandbox.options import Options
from sandbox.realnodes import check
from tests.realnodes.containers import Containers
from tests.servers import fresh_namespace, running_sandbox

OPTIONS = Options(accounting=True, nodes=0, plain_nodes=1, real_nodes=2, real_gpus=2, hurried=True)


@pytest.fixture(scope="session")
def able() -> None:
    """Skip unless this machine can run real nodes."""
    facts = check.gather(
        Path("/var/tmp"),  # noqa: S108  # any disk
        nodes=OPTIONS.real_nodes,
        wanted_network="",
        assets=assets.where(needed(OPTIONS)),
        environ=os.environ,
        is_alive=running.is_running,
    )
    faults = [finding.what for finding in check.findings(facts) if finding.stops]
    if faults:
        pytest.skip("; ".join(faults))


@pytest.fixture(scope="session")
def real(able: None) -> Iterator[Sandbox]:
    with running_sandbox(OPTIONS) as sandbox:
        yield sandbox


@pytest.fixture
def containers(real: Sandbox) -> Iterator[Containers]:
    """A bridged namespace for pods with real containers."""
    with fresh_namespace(real, labels={names.ENABLED_LABEL: "true"}) as namespace:
        yield Containers(real, namespace)
