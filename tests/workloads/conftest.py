"""The real system with the real controllers of workload kinds, one sandbox for all tests here."""

from collections.abc import Iterator

import pytest

from sandbox.client import Sandbox
from sandbox.options import WORKLOADS, Options
from slurmruntime.values import names
from tests.integration.worlds import Worlds
from tests.servers import fresh_namespace, running_sandbox, wait_until
from tests.workloads.kinds import RACK, Kinds


@pytest.fixture(scope="session")
def workload_sandbox() -> Iterator[Sandbox]:
    """Two racks of two nodes, and Slurm knows them."""
    options = Options(
        accounting=True,
        workloads=WORKLOADS,
        settings=(f"controllers.node_features=[{RACK}]",),
        lease_s=16,  # nobody is killed here, and three controllers more start up
    )
    with running_sandbox(options) as sandbox:
        for number, node in enumerate(options.node_names):
            label = {"metadata": {"labels": {RACK: f"rack-{number // 2}"}}}
            sandbox.admin.patch(f"/api/v1/nodes/{node}", label)
        features = ("sinfo", "--noheader", "--Node", "--format=%b")
        wait_until(
            lambda: sandbox.run(*features).count(f"{RACK}=") == options.nodes, 30, sandbox=sandbox
        )
        yield sandbox


@pytest.fixture
def kinds(workload_sandbox: Sandbox) -> Iterator[Kinds]:
    """A fresh namespace that Slurm places."""
    with fresh_namespace(workload_sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        yield Kinds(Worlds(workload_sandbox, name))
