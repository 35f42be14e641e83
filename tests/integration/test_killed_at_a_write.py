"""Every write of a pod's life goes wrong, and at every one our services are killed: it is done, and done once."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from tests import faults
from tests.fault_bench import FaultBench
from tests.faults import Fault
from tests.integration.worlds import LIVE, Worlds, is_released, played
from tests.servers import wait_until

_OVER_WITHIN_S = 240.0
"""Each death costs the time until the next leader has the lease."""
HELD = {"slurmjob.slinky.slurm.net/hold": "true"}


@dataclass(frozen=True, slots=True)
class Write:
    """A request at which its sender dies."""

    service: str
    peer: str
    method: str
    path: str
    """After the pod's own; or what Slurm is asked for."""


@dataclass(frozen=True, slots=True)
class Life:
    """A pod, what becomes of it, and the writes that takes."""

    name: str
    annotations: dict[str, str]
    happens: Callable[[Worlds, str], None]
    ends: str
    writes: tuple[Write, ...]


def nothing(_worlds: Worlds, _uid: str) -> None:
    pass


def deleted_while_it_runs(worlds: Worlds, _uid: str) -> None:
    worlds.await_phase("deleted", "Running", deadline_s=_OVER_WITHIN_S)
    worlds.delete("deleted")


def cancelled_while_it_runs(worlds: Worlds, uid: str) -> None:
    worlds.await_phase("cancelled", "Running", deadline_s=_OVER_WITHIN_S)
    worlds.scancel(worlds.await_live(uid).id)


def deleted_while_it_waits(worlds: Worlds, uid: str) -> None:
    worlds.await_live(uid, deadline_s=_OVER_WITHIN_S)
    worlds.delete("waits")


SUBMIT = Write("extender", "slurmrestd", "POST", "/job/submit")
PIN = Write("extender", "apiserver", "PATCH", "")
BIND = Write("extender", "apiserver", "POST", "/binding")
COMPLETE = Write("controllers", "slurmctld", "", "")
CANCEL = Write("controllers", "slurmrestd", "DELETE", "/job/")
DISRUPT = Write("controllers", "apiserver", "PATCH", "/status")
DELETE = Write("controllers", "apiserver", "DELETE", "")
RELEASE = Write("controllers", "apiserver", "PATCH", "")
GIVE_UP = Write("extender", "slurmrestd", "DELETE", "/job/")
LET_GO = Write("extender", "apiserver", "PATCH", "")

LIVES = [
    Life("ends", played(seconds=1), nothing, "COMPLETED", (SUBMIT, PIN, BIND, COMPLETE, RELEASE)),
    Life("deleted", {}, deleted_while_it_runs, "CANCELLED", (CANCEL, RELEASE)),
    Life("cancelled", {}, cancelled_while_it_runs, "CANCELLED", (DISRUPT, DELETE)),
    Life("waits", HELD, deleted_while_it_waits, "", (GIVE_UP, LET_GO)),
]


@pytest.mark.parametrize(
    ("fault", "dies"),
    [
        pytest.param(faults.LOST_REQUEST, True, id="killed before it"),
        pytest.param(faults.LOST_REPLY, True, id="killed after it"),
        pytest.param(faults.LOST_REQUEST, False, id="lost"),
        pytest.param(faults.LOST_REPLY, False, id="done without a reply"),
        pytest.param(replace(faults.TRUNCATED, cut_at=90), False, id="half a reply"),
        pytest.param(
            faults.answers(500, "{}", reaches_server=True), False, id="done and called an error"
        ),
    ],
)
def test_each_write_goes_wrong(
    worlds: Worlds, bench: FaultBench, fault: Fault, *, dies: bool
) -> None:
    struck: list[Write] = []

    def strike(write: Write, name: str) -> None:
        def note() -> None:
            struck.append(write)
            if dies:
                bench.kill(write.service)

        of_a_pod = write.peer == "apiserver"
        path = f"{worlds.path}/pods/{name}{write.path}$" if of_a_pod else write.path
        bench.link(write.service, write.peer).inject(fault.and_then(note), write.method, path)

    uids = {}
    for life in LIVES:
        for write in life.writes:
            strike(write, life.name)
        uids[life.name] = worlds.submit(life.name, annotations=life.annotations)
    for life in LIVES:
        life.happens(worlds, uids[life.name])

    due = Counter(write for life in LIVES for write in life.writes)

    def over() -> bool:
        """The last write is seen in the API server a moment before its fault strikes."""
        pods = worlds.sandbox.admin.get(f"{worlds.path}/pods")["items"]
        return all(map(is_released, pods)) and not due - Counter(struck)

    wait_until(over, _OVER_WITHIN_S, sandbox=worlds.sandbox)
    assert [] == [job for uid in uids.values() for job in worlds.jobs(uid) if job.state in LIVE]
    ended = {name: [job.state for job in worlds.accounted(uid)] for name, uid in uids.items()}
    assert {life.name: [life.ends] for life in LIVES if life.ends} == {
        name: states for name, states in ended.items() if states
    }
    bench.calm()
