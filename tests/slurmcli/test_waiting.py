"""A pod that waits, whatever for: condition, Event, `why` and `queue` say it in words a newcomer understands."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from bridge.domain.lifecycle import waiting_reasons
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from tests.integration.worlds import PATIENCE_S, Worlds, condition
from tests.servers import wait_until
from tests.slurmcli.conftest import Run

PREFIX = "slurmjob.slinky.slurm.net"
HELD = {f"{PREFIX}/hold": "true"}


@dataclass(frozen=True, slots=True)
class Case:
    """A reason, and how to bring it about for a pod whose job is held."""

    reason: str
    words: str
    change: Sequence[str] = ()
    """Arguments of `scontrol update job=N`, as an administrator would."""
    cpus: str = "1"


CASES = {
    "priority": Case("Priority", "jobs with a higher priority go first", cpus="8"),
    "resources": Case("Resources", "the resources it needs are not free", cpus="8"),
    "qos-limit": Case(
        "QOSMaxCpuPerJobLimit",
        "more than the CPU limit of its QOS for one job",
        ("qos=narrow",),
        cpus="2",
    ),
    "association-limit": Case(
        "AssocGrpCpuLimit",
        "its account as a whole has reached its CPU limit",
        ("account=small",),
        cpus="2",
    ),
    "reservation": Case("Reservation", "its reservation has not begun", ("reservation=tomorrow",)),
    "partition-down": Case("PartitionDown", "its partition is down", ("partition=dark",)),
}


@pytest.fixture(scope="module")
def troubles(full_sandbox: Sandbox) -> Iterator[None]:
    """What pods may have to wait for; nobody else meets it."""
    run = full_sandbox.run
    run("sacctmgr", "-i", "add", "qos", "narrow", "MaxTRESPerJob=cpu=1")
    run("sacctmgr", "-i", "add", "account", "small", "GrpTRES=cpu=1")
    run("sacctmgr", "-i", "add", "user", "kubernetes", "account=small")
    run("sacctmgr", "-i", "modify", "user", "kubernetes", "set", "qos+=narrow")
    run("scontrol", "create", "partition=dark", "nodes=ALL", "state=DOWN")
    yield
    run("scontrol", "delete", "partition=dark")


@pytest.fixture
def worlds(full_sandbox: Sandbox, bridged_namespace: str, troubles: None) -> Worlds:
    return Worlds(full_sandbox, bridged_namespace)


@pytest.fixture
def reservation(worlds: Worlds, request: pytest.FixtureRequest) -> Iterator[None]:
    """Of tomorrow, where it is waited for: nothing without a time limit starts on its node until then."""
    case: Case = request.node.callspec.params["case"]
    if case.reason != "Reservation":
        yield
        return
    worlds.scontrol(
        *("create", "reservation=tomorrow", "starttime=tomorrow", "duration=60"),
        *("users=kubernetes", "nodecnt=1", "partition=slurm-bridge"),
    )
    yield
    worlds.clear()
    # Slurm keeps it while a job names it, and what it keeps takes the nodes from all later tests.
    wait_until(lambda: _is_deleted(worlds, "reservation=tomorrow"), PATIENCE_S)


def _is_deleted(worlds: Worlds, what: str) -> bool:
    try:
        worlds.scontrol("delete", what)
    except SandboxError:
        return False
    return True


@pytest.fixture
def strangers(worlds: Worlds, reservation: None, request: pytest.FixtureRequest) -> Iterator[None]:
    """Every node is somebody else's, where that is what it waits for."""
    case: Case = request.node.callspec.params["case"]
    if case.change:
        yield
        return
    with worlds.strangers_on(*worlds.sandbox.instance.options.node_names):
        if case.reason == "Priority":
            worlds.submit("first", cpus="8")
            worlds.await_pod("first", lambda pod: condition(pod).get("reason") == "Resources")
        yield


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_everybody_says_why(
    worlds: Worlds,
    strangers: None,
    case: Case,
    run: Run,
    ask: Callable[..., Any],
) -> None:
    uid = worlds.submit("waits", cpus=case.cpus, annotations=HELD if case.change else {})
    job = worlds.await_live(uid)
    if case.change:
        worlds.scontrol("update", f"job={job.id}", *case.change)
        worlds.scontrol("release", str(job.id))

    told = worlds.await_pod("waits", lambda pod: condition(pod).get("reason") == case.reason)
    message = condition(told)["message"]
    assert case.words in message
    assert worlds.await_event("waits", case.reason).endswith(message)
    explanation = waiting_reasons.explain(case.reason)
    assert explanation is not None
    assert explanation.next_step in message
    why = run("why", f"{worlds.namespace}/waits")
    assert 3 == why.exit_code
    assert case.words in why.stdout
    entries = {entry["workload"]: entry for entry in ask("queue", "-n", worlds.namespace)}
    assert case.reason == entries["Pod/waits"]["reason"]


@pytest.mark.parametrize(
    ("annotations", "reason", "words"),
    [
        (HELD, "JobHeldUser", "its user holds it"),
        ({f"{PREFIX}/dependency": "afterok:{}"}, "Dependency", "a job it depends on has not ended"),
    ],
)
def test_what_it_asked_for_itself(
    worlds: Worlds, run: Run, annotations: dict[str, str], reason: str, words: str
) -> None:
    before = worlds.await_live(worlds.submit("before", annotations=HELD))
    asked = {key: text.format(before.id) for key, text in annotations.items()}
    worlds.submit("waits", annotations=asked)

    told = worlds.await_pod("waits", lambda pod: condition(pod).get("reason") == reason)

    assert words in condition(told)["message"]
    assert worlds.await_event("waits", reason).endswith(condition(told)["message"])
    assert words in run("why", f"{worlds.namespace}/waits").stdout
