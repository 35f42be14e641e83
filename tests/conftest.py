"""Fixtures of all tests. The servers are real, started when the first test asks, and end when no other will (`tests.sharing`).

- `slurm`: a `sandbox.client.Sandbox` of slurmctld and slurmrestd, four external nodes node-0 … node-3 (8 CPUs, 32 GiB,
  4 GPUs). `slurm.slurmrestd_url`, `.token_file`, `.token(user)`, `.slurmctld_port`, `.run("squeue")`, `.restart("slurmctld",
  signal="KILL", wipe=True)`; tests share it: name your nodes and jobs so that they do not meet others.
- `slurm_accounting`: the same with mariadb and slurmdbd; users kubernetes, alice, bob in the account kubernetes.
- `control_plane`: a Sandbox of etcd, API server, controller manager, scheduler and KWOK; `.kubeconfig`, `.admin` (a small
  synchronous API client), `.kubectl(...)`, `.user_kubeconfig("alice", "team-a")`. No bridge: nothing intercepts pods.
- `full_sandbox`: everything, with accounting and the bridge.
- `namespace`: a fresh namespace in `control_plane`, `bridged_namespace`: one in `full_sandbox`, labelled for Slurm.

Who breaks a part (stop, pause, wipe) puts it back. `tests.servers` has `wait_until`, `until` (async), `fresh_namespace` and
`running_sandbox` for a test that needs a sandbox of its own.
"""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names
from tests.servers import fresh_namespace, running_sandbox

pytest_plugins = ["tests.sharing", "tests.spending"]

settings.register_profile(
    "patient", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("patient")
"""A busy machine is slow; that says nothing about what is tested."""


@pytest.fixture(scope="session")
def slurm() -> Iterator[Sandbox]:
    with running_sandbox(Options(kubernetes=False, bridge=False)) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def slurm_accounting() -> Iterator[Sandbox]:
    with running_sandbox(Options(kubernetes=False, bridge=False, accounting=True)) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def control_plane() -> Iterator[Sandbox]:
    with running_sandbox(Options(slurm=False, bridge=False)) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def full_sandbox() -> Iterator[Sandbox]:
    with running_sandbox(Options(accounting=True)) as sandbox:
        yield sandbox


@pytest.fixture
def namespace(control_plane: Sandbox) -> Iterator[str]:
    with fresh_namespace(control_plane, labels={}) as name:
        yield name


@pytest.fixture
def bridged_namespace(full_sandbox: Sandbox) -> Iterator[str]:
    with fresh_namespace(full_sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        yield name
