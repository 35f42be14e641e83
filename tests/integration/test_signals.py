"""Signals to own jobs: slurmctld looks for a slurmd on their nodes, and closes a node where none answers.

With the users' own tokens, on a node with devices. Whatever they do there, others' pods start there within seconds.
"""

import time

import pytest

from bridge.slurm.respond import OPERATION
from sandbox.client import Sandbox
from tests.attacks import attack
from tests.integration.counting import calls
from tests.integration.machines import PATIENCE_S, Machine
from tests.integration.slurm_users import run_as
from tests.integration.worlds import Manifest, Worlds, container
from tests.servers import wait_until

OWNER = "kubernetes"
CLOSED_WITHIN_S = 20.0
"""slurmctld looks for a slurmd for as long as MessageTimeout, which is 5 s here."""
OPEN_AGAIN_WITHIN_S = 30.0
"""Five seconds where the machine is idle; three tests share two cores here."""


@pytest.fixture
def registered(machine: Machine) -> Machine:
    """A machine that Slurm has."""
    machine.label("true")
    machine.await_in_service()
    return machine


def with_a_gpu() -> Manifest:
    main = container()
    resources = {**main["resources"], "limits": {"nvidia.com/gpu": "1"}}
    return {**main, "resources": resources}


def is_closed(machine: Machine) -> bool:
    """Whether Slurm starts nothing there because nobody answers."""
    return "NOT_RESPONDING" in machine.in_slurm()["State"]


def answers(sandbox: Sandbox) -> int:
    """How often the node controller has answered for a slurmd."""
    return calls(sandbox, "slurm", "controllers")[OPERATION]


@pytest.mark.safeguard(
    "silence",
    "a Slurm user signals or suspends an own job, so that a pod without limits has its node alone",
    "some seconds, until the node controller has answered for the slurmd",
)
@pytest.mark.parametrize(
    "command",
    [
        attack(
            "signal",
            "signal one's own placeholder (`scancel -s USR1`), which makes its node NOT_RESPONDING, so that nobody's next pod starts there",
            "the node controller registers the node in the place of the slurmd that Slurm looked for",
            ("scancel", "-s", "USR1"),
        ),
        attack(
            "suspend",
            "suspend one's own placeholder, which makes its node NOT_RESPONDING, so that nobody's next pod starts there",
            "the node controller registers the node in the place of the slurmd that Slurm looked for",
            ("scontrol", "suspend"),
        ),
    ],
)
def test_a_node_is_open_again_in_seconds(
    registered: Machine, worlds: Worlds, command: tuple[str, ...]
) -> None:
    """Beside a neighbour's pod, so that the node cannot be made anew."""
    there, gpu = registered.selector, [with_a_gpu()]
    neighbour = worlds.submit("neighbour", containers=gpu, nodeSelector=there)
    mine = worlds.submit("mine", nodeSelector=there)
    for pod in ("neighbour", "mine"):
        worlds.await_phase(pod, "Running")
    before, answered = registered.in_slurm(), answers(worlds.sandbox)

    run_as(registered.slurm, OWNER, *command, str(worlds.live(mine)[0].id))

    # A look at the node may come between its closing and its opening, so what is counted says that it was closed.
    wait_until(
        lambda: is_closed(registered) or answers(worlds.sandbox) > answered,
        CLOSED_WITHIN_S,
        sandbox=worlds.sandbox,
    )
    closed_at = time.monotonic()
    wait_until(lambda: not is_closed(registered), PATIENCE_S, sandbox=worlds.sandbox)
    assert time.monotonic() - closed_at < OPEN_AGAIN_WITHIN_S
    assert answers(worlds.sandbox) > answered
    worlds.submit("later", containers=gpu, nodeSelector=there)
    worlds.await_phase("later", "Running")
    after = registered.in_slurm()
    same = ("NodeAddr", "NodeHostName", "CPUTot", "RealMemory", "Gres", "Partitions")
    assert [before[key] for key in same] == [after[key] for key in same]
    assert "DRAIN" not in after["State"]
    assert ["RUNNING"] == [job.state for job in worlds.live(neighbour)]


def test_it_is_so_after_a_restart_of_slurmctld_too(registered: Machine, worlds: Worlds) -> None:
    """Which then knows of the node's devices from its state only."""
    there, gpu = registered.selector, [with_a_gpu()]
    uid = worlds.submit("mine", containers=gpu, nodeSelector=there)
    worlds.await_phase("mine", "Running")
    (job,) = worlds.live(uid)
    registered.slurm.restart("slurmctld")

    run_as(registered.slurm, OWNER, "scancel", "-s", "USR1", str(job.id))

    wait_until(lambda: is_closed(registered), CLOSED_WITHIN_S, sandbox=worlds.sandbox)
    wait_until(lambda: not is_closed(registered), PATIENCE_S, sandbox=worlds.sandbox)
    later = worlds.submit("later", containers=gpu, nodeSelector=there)
    worlds.await_phase("later", "Running")
    held = {given(registered.slurm, one.id) for one in (job, *worlds.live(later))}
    assert {"0", "1"} == held


def given(slurm: Sandbox, job: int) -> str:
    """The index of a job's device."""
    shown = slurm.run("scontrol", "-d", "show", "job", str(job))
    return shown.partition("(IDX:")[2].partition(")")[0]
