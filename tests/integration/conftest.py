"""The real system, whole: every test here runs against both clusters and our three services."""

from collections.abc import Iterator

import pytest

from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.fault_bench import FaultBench, fault_bench
from tests.integration.creators import ALICE, BOB, Tenants, policy
from tests.integration.machines import Machine, a_machine
from tests.integration.policed import person, policed
from tests.integration.residents import Residents, moved_in
from tests.integration.worlds import Worlds
from tests.servers import fresh_namespace


@pytest.fixture(autouse=True)
def nothing_crashed(request: pytest.FixtureRequest) -> Iterator[None]:
    """An error of ours fails the test that brought it about, although the program goes on."""
    if "full_sandbox" not in request.fixturenames:
        yield
        return
    sandbox: Sandbox = request.getfixturevalue("full_sandbox")
    logs = [sandbox.instance.log(name) for name in sandbox.instance.options.slurm_services]
    lengths = [log.stat().st_size for log in logs]
    yield
    if request.node.get_closest_marker("crashes"):
        return
    for log, length in zip(logs, lengths, strict=True):
        with log.open("rb") as lines:
            lines.seek(length)
            crashes = [line for line in lines if b"set_aside.crashed" in line]
        assert [] == crashes


@pytest.fixture
def worlds(full_sandbox: Sandbox, bridged_namespace: str) -> Iterator[Worlds]:
    """A fresh namespace that Slurm places, and Slurm."""
    worlds = Worlds(full_sandbox, bridged_namespace)
    yield worlds
    worlds.clear()


@pytest.fixture
def elsewhere(full_sandbox: Sandbox) -> Iterator[Worlds]:
    """A fresh namespace that is none of Slurm's business."""
    with fresh_namespace(full_sandbox, labels={}) as name:
        worlds = Worlds(full_sandbox, name)
        yield worlds
        worlds.clear()


@pytest.fixture(scope="module")
def residents(full_sandbox: Sandbox) -> Iterator[Residents]:
    """One pod that runs and one that waits, while the tests of one file make trouble."""
    with moved_in(full_sandbox) as residents:
        yield residents


@pytest.fixture(scope="module")
def bench(full_sandbox: Sandbox) -> Iterator[FaultBench]:
    """The services behind proxies for the tests of one file; each begins and ends without faults."""
    with fault_bench(full_sandbox) as bench:
        yield bench


@pytest.fixture
def machine(full_sandbox: Sandbox) -> Iterator[Machine]:
    """One more node, not labelled yet; in the end neither side has it."""
    with a_machine(full_sandbox) as machine:
        yield machine
    machine.await_not_in_slurm()


@pytest.fixture
def others(full_sandbox: Sandbox) -> Iterator[Worlds]:
    """A second fresh namespace that Slurm places."""
    with fresh_namespace(full_sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        worlds = Worlds(full_sandbox, name)
        yield worlds
        worlds.clear()


@pytest.fixture(scope="session")
def accounts(full_sandbox: Sandbox) -> None:
    """Accounts of their own in Slurm, beside the sandbox's one."""

    def sacctmgr(*arguments: str) -> None:
        full_sandbox.run("sacctmgr", "-i", *arguments)

    for qos in ("long", "high"):
        sacctmgr("add", "qos", qos)
    for account, user in (("physics", "alice"), ("chemistry", "bob")):
        sacctmgr("add", "account", account)
        sacctmgr("add", "user", user, f"account={account}")
        sacctmgr("modify", "account", account, "set", "qos=normal,long")


@pytest.fixture(scope="module")
def tenants(full_sandbox: Sandbox, accounts: None) -> Iterator[Tenants]:
    """Alice and Bob, each in a namespace and an account of their own, under a policy."""
    labels = {names.ENABLED_LABEL: "true"}
    with (
        fresh_namespace(full_sandbox, labels=labels) as physics,
        fresh_namespace(full_sandbox, labels={**labels, "tenant": "chemistry"}) as chemistry,
        policed(full_sandbox, policy(physics)) as files,
        person(full_sandbox, physics, ALICE, "physicists") as alice,
        person(full_sandbox, chemistry, BOB, "chemists") as bob,
    ):
        yield Tenants(
            sandbox=full_sandbox,
            files=files,
            physics=Worlds(full_sandbox, physics),
            chemistry=Worlds(full_sandbox, chemistry),
            alice=alice,
            bob=bob,
        )


@pytest.fixture
def room(tenants: Tenants) -> Iterator[None]:
    """Both namespaces are empty when the test is over."""
    yield
    for worlds in (tenants.physics, tenants.chemistry):
        worlds.clear()
