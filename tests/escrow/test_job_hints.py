"""What a leader makes of slurmctld's hints; time is virtual."""

import asyncio
import signal
from collections.abc import Awaitable, Callable

from bridge.escrow.job_hints import JobHints
from slurmclient.errors import Unavailable
from slurmruntime.values.ids import JobId
from tests import virtual_time
from tests.make.slurm import Job, Slurm
from tests.make.trouble import Trouble
from tests.virtual_time import VirtualClock

OURS, STRANGE = JobId(7), JobId(8)


class Leader:
    """Slurm with a job that is being configured, and a view of it that records when it is asked to read."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.slurm = Slurm(
            Trouble(), [Job(id=OURS, comment="", state="RUNNING CONFIGURING", nodes="k1")]
        )
        self.waits = True
        self.read: list[float] = []
        self.looks = 0
        self.is_away = False
        self.news = JobHints(
            self,  # type: ignore[arg-type]  # it takes the client's place
            clock,
        )

    async def call(self, *args: object, **kwargs: object) -> object:
        self.looks += 1
        if self.is_away:
            raise Unavailable("job.states", "no connection")
        return await self.slurm.call(*args, **kwargs)  # type: ignore[arg-type]  # passed on as it came

    def job(self, job_id: JobId) -> object | None:
        return self.slurm.jobs.get(job_id)

    def ask(self) -> None:
        self.read.append(self.clock.monotonic())

    def lead(self) -> None:
        self.news.lead(self)  # type: ignore[arg-type]  # it takes its place


def played(play: Callable[[Leader], Awaitable[None]], *, leads: bool = True) -> Leader:
    async def main(clock: VirtualClock) -> Leader:
        leader, stop = Leader(clock), asyncio.Event()
        if leads:
            leader.lead()
        async with asyncio.TaskGroup() as group:
            group.create_task(leader.news.run(stop))
            await play(leader)
            await clock.sleep(20)
            stop.set()
        return leader

    return virtual_time.run(main)


def test_a_start_is_read_soon_after_the_job_has_left_configuring() -> None:
    left_at = 0.0

    async def play(leader: Leader) -> None:
        nonlocal left_at
        leader.news.started(OURS)
        await leader.clock.sleep(0.15)
        assert [] == leader.read
        leader.slurm.jobs[OURS].state = "RUNNING"
        left_at = leader.clock.monotonic()

    (read_at,) = played(play).read
    assert 0 <= read_at - left_at < 0.08


def test_an_end_of_ours_is_read_at_once_and_a_strangers_is_not() -> None:
    async def play(leader: Leader) -> None:
        leader.news.ended(STRANGE)
        assert [] == leader.read
        leader.news.ended(OURS)
        assert [leader.clock.monotonic()] == leader.read

    played(play)


def test_nothing_is_asked_while_none_of_ours_waits() -> None:
    async def play(leader: Leader) -> None:
        leader.waits = False
        leader.news.started(OURS)

    assert 0 == played(play).looks


def test_who_does_not_lead_makes_nothing_of_it() -> None:
    async def play(leader: Leader) -> None:
        leader.news.started(OURS)
        leader.news.ended(OURS)

    leader = played(play, leads=False)
    assert (0, []) == (leader.looks, leader.read)


def test_a_job_that_stays_is_followed_for_a_while_only() -> None:
    async def play(leader: Leader) -> None:
        leader.news.started(OURS)
        leader.news.started(STRANGE)

    leader = played(play)
    assert [] == leader.read
    assert 10 < leader.looks < 50
    assert not leader.news._starting


def test_an_outage_of_slurm_is_survived() -> None:
    async def play(leader: Leader) -> None:
        leader.is_away = True
        leader.news.started(OURS)
        await leader.clock.sleep(1)
        leader.is_away = False
        leader.slurm.jobs[OURS].state = "RUNNING"

    assert 1 == len(played(play).read)


def test_a_hint_beside_another_one_holds_nobody_up() -> None:
    """Both starts are seen at one look. A loop that spins from then on would never end: the alarm reports it."""

    def spins(*_: object) -> None:
        raise AssertionError("the loop does not give way to any other")

    async def play(leader: Leader) -> None:
        leader.slurm.jobs[OURS].state = "RUNNING"
        leader.slurm.jobs[STRANGE] = Job(id=STRANGE, comment="", state="RUNNING", nodes="k1")
        leader.news.started(OURS)
        await leader.clock.sleep(0.005)
        leader.news.started(STRANGE)
        await leader.clock.sleep(1)
        assert not leader.news._starting

    before = signal.signal(signal.SIGALRM, spins)
    signal.alarm(10)
    try:
        leader = played(play)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert 1 == len(leader.read)


def test_of_a_flood_only_so_many_are_followed() -> None:
    async def play(leader: Leader) -> None:
        for number in range(5000):
            leader.news.started(JobId(number + 1))
        assert 1000 == len(leader.news._starting)

    played(play)
