"""When a job may be launched, from Slurm and our caches; time is virtual."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from bridge.domain.model.pods import Phase, Pod
from bridge.escrow.launch_gate import LaunchGate
from bridge.kube.decode import PODS
from slurmclient.errors import Unavailable
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.node_objects import NODES
from slurmruntime.values import names
from slurmruntime.values.ids import JobId, KubeNode, PodUid
from tests import virtual_time
from tests.make import placing as build
from tests.make.slurm import Job, Slurm
from tests.make.trouble import Trouble
from tests.virtual_time import VirtualClock

OLD, NATIVE = 7, 8
HYBRID = {names.EXTERNAL_NODE_LABEL: "false", names.HYBRID_NODE_LABEL: "true"}


class Hall:
    """One hybrid node, a pod there whose job has ended, and a native job that wants the node."""

    def __init__(self, clock: VirtualClock) -> None:
        self.slurm = Slurm(
            Trouble(),
            [
                Job(id=OLD, comment="", state="CANCELLED", nodes="k1"),
                Job(
                    id=NATIVE,
                    comment="",
                    state="RUNNING CONFIGURING",
                    nodes="k1",
                    is_external=False,
                ),
            ],
        )
        self.calls = 0
        self.is_away = False
        self.blind: str | None = None
        self.pods, self.nodes = Cache(PODS), Cache(NODES)
        self.clock = clock
        self.gate = LaunchGate(
            self,  # type: ignore[arg-type]  # it takes the client's place
            pods=self.pods,
            kube_nodes=self.nodes,
            blind=lambda: self.blind,
            clock=clock,
        )
        self.node(HYBRID)
        self.old = build.pod(
            uid=PodUid("old"),
            name="old",
            gates=(),
            labels={names.JOB_ID_LABEL: str(OLD)},
            kube_node=KubeNode("k1"),
            phase=Phase.RUNNING,
            resource_version="1",
        )
        self.pods.put(self.old)

    async def call(self, *args: object, **kwargs: object) -> object:
        self.calls += 1
        if self.is_away:
            raise Unavailable("job.get", "no connection")
        return await self.slurm.call(*args, **kwargs)  # type: ignore[arg-type]  # passed on as it came

    def node(self, labels: dict[str, str]) -> None:
        self.nodes.put(build.kube_node("k1", labels=labels, resource_version=str(labels)))

    async def asks(self, within_s: float = 10.0) -> tuple[str, float]:
        """The answer, and after how long it came."""
        began = self.clock.monotonic()
        answer = await self.gate.until_free(JobId(NATIVE), within_s=within_s)
        return answer, round(self.clock.monotonic() - began, 1)


def played(play: Callable[[Hall], Awaitable[None]]) -> None:
    async def main(clock: VirtualClock) -> None:
        await play(Hall(clock))

    virtual_time.run(main)


def test_a_native_job_waits_until_the_pod_is_gone_and_no_longer() -> None:
    async def play(hall: Hall) -> None:
        async with asyncio.TaskGroup() as group:
            asked = group.create_task(hall.asks())
            await hall.clock.sleep(4.2)
            assert not asked.done()
            hall.pods.remove(PODS.identify(hall.old).key)
        answer, after_s = asked.result()
        assert "" == answer
        assert 4.2 <= after_s < 4.5

    played(play)


def test_it_is_told_to_ask_again_after_a_while_and_why() -> None:
    async def play(hall: Hall) -> None:
        answer, after_s = await hall.asks(within_s=3.0)
        assert "containers of ended jobs may still run: team-a/old on k1" == answer
        assert 3.0 <= after_s < 3.3
        assert not hall.gate._waiting

    played(play)


@pytest.mark.parametrize("state", ["RUNNING", "RUNNING CONFIGURING", "SUSPENDED"])
def test_a_pod_whose_job_lives_holds_nobody(state: str) -> None:
    async def play(hall: Hall) -> None:
        hall.slurm.jobs[OLD].state = state
        assert ("", 0.0) == await hall.asks()

    played(play)


@pytest.mark.parametrize("state", ["PENDING", "PENDING REQUEUED", "COMPLETED COMPLETING", "?"])
def test_a_job_that_has_no_nodes_any_more_does_not_speak_for_its_pod(state: str) -> None:
    """Somebody has requeued it: Slurm has given its share to others, and its containers run on."""

    async def play(hall: Hall) -> None:
        hall.slurm.jobs[OLD].state = state
        assert "team-a/old on k1" in (await hall.asks(within_s=1.0))[0]

    played(play)


def test_slurm_is_read_anew_at_every_look() -> None:
    """The hint came before Slurm showed the end of the earlier job, or the job was cancelled meanwhile."""

    async def play(hall: Hall) -> None:
        async with asyncio.TaskGroup() as group:
            asked = group.create_task(hall.asks())
            await hall.clock.sleep(2.5)
            hall.slurm.jobs[NATIVE].state = "CANCELLED"
        answer, after_s = asked.result()
        assert "" == answer
        assert after_s < 4

    played(play)


def test_a_placeholder_is_not_held_because_its_pod_waits_at_its_gate() -> None:
    async def play(hall: Hall) -> None:
        hall.slurm.jobs[NATIVE].is_external = True
        assert ("", 0.0) == await hall.asks()

    played(play)


def test_without_a_pod_on_such_a_node_slurm_is_not_even_asked() -> None:
    async def play(hall: Hall) -> None:
        hall.node({})  # external: no native job starts there
        hall.is_away = True
        assert ("", 0.0) == await hall.asks()
        assert 0 == hall.calls

    played(play)


def test_what_cannot_be_known_holds_the_job() -> None:
    async def play(hall: Hall) -> None:
        hall.is_away = True
        answer, _ = await hall.asks(within_s=2.0)
        assert answer.startswith("Slurm cannot be read: ")
        hall.is_away, hall.blind = False, "nothing heard for 99 s"
        answer, _ = await hall.asks(within_s=2.0)
        assert "our list of pods may be out of date: nothing heard for 99 s" == answer

    played(play)


def test_a_job_that_slurm_no_longer_has_counts_as_ended() -> None:
    async def play(hall: Hall) -> None:
        del hall.slurm.jobs[OLD]
        assert "" != (await hall.asks(within_s=1.0))[0]

    played(play)


def test_a_pod_that_gets_its_node_during_a_look_counts() -> None:
    async def play(hall: Hall) -> None:
        hall.slurm.jobs[OLD].state = "RUNNING"
        late = build.pod(
            uid=PodUid("late"),
            name="late",
            labels={names.JOB_ID_LABEL: "99"},
            kube_node=KubeNode("k1"),
            phase=Phase.RUNNING,
        )
        answered = hall.slurm.call

        async def call(*args: object, **kwargs: object) -> object:
            found: object = await answered(*args, **kwargs)  # type: ignore[arg-type]  # passed on as it came
            hall.pods.put(late)
            return found

        hall.slurm.call = call  # type: ignore[method-assign, assignment]  # between two answers
        assert "team-a/late on k1" in (await hall.asks(within_s=0.0))[0]

    played(play)


def test_many_who_wait_share_a_few_looks_at_slurm() -> None:
    async def play(hall: Hall) -> None:
        at_once, most = 0, 0
        answered = hall.slurm.call

        async def call(*args: object, **kwargs: object) -> object:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await hall.clock.sleep(0.01)
            found: object = await answered(*args, **kwargs)  # type: ignore[arg-type]  # passed on as it came
            at_once -= 1
            return found

        hall.slurm.call = call  # type: ignore[method-assign, assignment]  # a slow one
        async with asyncio.TaskGroup() as group:
            for _ in range(100):
                group.create_task(hall.asks(within_s=1.0))
        assert 4 == most

    played(play)


def test_it_is_answered_in_time_although_slurm_does_not_answer() -> None:
    """Who asks listens for thirteen seconds, and then takes the silence for nobody's."""

    async def play(hall: Hall) -> None:
        async def call(*_: object, **__: object) -> object:
            await asyncio.Event().wait()
            raise AssertionError

        hall.slurm.call = call  # type: ignore[method-assign, assignment]  # it hangs
        answer, after_s = await hall.asks(within_s=10.0)
        assert "Slurm cannot be read: no answer within 12 s" == answer
        assert 12.0 == after_s

    played(play)


def test_all_are_answered_in_time_although_looks_are_slow() -> None:
    async def play(hall: Hall) -> None:
        answered = hall.slurm.call

        async def call(*args: object, **kwargs: object) -> object:
            await hall.clock.sleep(3.0)
            found: object = await answered(*args, **kwargs)  # type: ignore[arg-type]  # passed on as it came
            return found

        hall.slurm.call = call  # type: ignore[method-assign, assignment]  # a slow one
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(hall.asks(within_s=10.0)) for _ in range(40)]
        for each in asked:
            answer, after_s = each.result()
            assert answer
            assert after_s <= 12.0
        assert not hall.gate._waiting

    played(play)


def test_all_are_answered_when_the_process_stops() -> None:
    """Else they would be cut off, or told that something went wrong here."""

    async def play(hall: Hall) -> None:
        async with asyncio.TaskGroup() as group:
            asked = group.create_task(hall.asks())
            await hall.clock.sleep(3.3)
            hall.gate.close()
        answer, after_s = asked.result()
        assert "containers of ended jobs may still run: team-a/old on k1" == answer
        assert after_s < 3.6
        assert 0.0 == (await hall.asks())[1]

    played(play)


def test_ends_of_pods_elsewhere_do_not_disturb() -> None:
    async def play(hall: Hall) -> None:
        other: Pod = build.pod(uid=PodUid("other"), name="other", resource_version="1")
        hall.pods.put(other)
        async with asyncio.TaskGroup() as group:
            group.create_task(hall.asks(within_s=0.9))
            await hall.clock.sleep(0.5)
            before = hall.calls
            hall.pods.remove(PODS.identify(other).key)
            await hall.clock.sleep(0.2)
            assert before == hall.calls

    played(play)
