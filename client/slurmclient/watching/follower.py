"""Follow Slurm's jobs by cheap readings: all of them are listed, and few are fetched.

Slurm cannot list "the jobs of interest", and a full list of 10 000 jobs is 48 MB. A reading therefore lists
ids and states (`listing`) and fetches only the jobs that are not classified yet and those of interest whose
state has changed. Which these are, and how to fetch them, is the caller's to say (`JobReader`).

An id means the same job as before only until slurmctld restarts: after a crash it may assign the
ids of the last seconds to other jobs. A reading that brings changes, or that decisions are based on,
therefore also checks whether it is still the same slurmctld; if not, all ids count as new.
(Before Slurm 26.05, and with a backup, every job is fetched again once a day: `slurmctld`.)
A reading that repeats the last one, and that no decision is based on, checks it now and then.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from slurmclient.errors import SlurmError
from slurmclient.watching import unread
from slurmclient.watching.listing import JobListing, Lists
from slurmclient.watching.slurmctld import Calls, Diagnosis, Incarnation
from slurmclient.watching.unread import USUAL_PACE, LikelyInterest, Pace, Portion, UnreadJob

J = TypeVar("J")

_TRUSTED_S: Final = 10.0
"""How long ids are trusted without that check, while every reading repeats the last one."""

_PENDING: Final = frozenset({"PENDING"})


class JobReader(Protocol[J]):
    """Knows what a job is to the caller."""

    async def fetch(self, ids: Sequence[int], states: Mapping[int, frozenset[str]]) -> bool:
        """Fetch jobs, the most urgent first, and classify each: `keep`, `pass_over`, `set_aside` or `drop`.

        `states` are those of all jobs. Return False if a job was gone or has to be fetched again.
        """

    def update(self, job: J, states: frozenset[str]) -> J | None:
        """Return a job with new states, if these say everything; None if it has to be fetched."""

    def forget(self, id_: int, job: J) -> bool:
        """Note that Slurm no longer lists a job; return False to have it fetched a last time."""

    def restart(self) -> None:
        """Note that all ids are about to count as new."""


class JobReading(NamedTuple):
    """The result of one successful reading; the jobs themselves are the follower's."""

    began: float
    """When its list's first request was sent."""
    is_repeated: bool
    """Slurm listed exactly the jobs and states of the reading before."""
    has_waiting: bool
    """Some new jobs are still pending: they were not fetched, and will be when they run."""
    portion: Portion


class JobFollower(Generic[J]):
    """Lists jobs, and has them classified; there must be one reading at a time."""

    def __init__(
        self,
        calls: Calls,
        reader: JobReader[J],
        *,
        clock: Callable[[], float],
        pace: Pace = USUAL_PACE,
        arrays: bool = False,
        named: Callable[[], Iterable[int]] = tuple,
    ) -> None:
        """Start with nothing known; the first reading has every job classified.

        Args:
            clock: Returns monotonic seconds.
            arrays: Follow the records of arrays, too.
            named: Returns ids that are likely of interest; if there are many unknown jobs, these are fetched first.
        """
        self._calls, self._reader, self._clock, self._pace = calls, reader, clock, pace
        self.jobs: dict[int, J] = {}
        """The jobs of interest, until they are over and Slurm no longer lists them."""
        self.foreign: set[int] = set()
        """The jobs of no interest."""
        self.unreadable: dict[int, UnreadJob] = {}
        """The jobs that are set aside."""
        self.changes = 0
        """Grows whenever `jobs`, `foreign` or `unreadable` may have changed."""
        self.time: tuple[int, float, float] | None = None
        """slurmctld's clock as last read, in Unix seconds, and ours before and after; None before the first time."""
        self.cycle_s = 0.0
        """How long the last run of Slurm's scheduler took."""
        self._lists = Lists(calls, clock=clock, arrays=arrays, named=named)
        self._listing: JobListing | None = None
        """The listing of the last complete reading."""
        self._incarnation, self._trusted_until = Incarnation(), 0.0
        self._states: dict[int, frozenset[str] | None] = {}
        """The states that jobs of interest were classified with; None: they are fetched by the next reading."""
        self._noted: dict[int, float] = {}
        self._wanted: set[int] = set()
        self._left: dict[int, float] = {}
        """New jobs that are still pending and not fetched yet → since when."""
        self._likely = LikelyInterest(named)

    @property
    def listed_s(self) -> float:
        """How long Slurm took for the last list; 0 if none was needed."""
        return self._lists.took_s

    def note(self, id_: int, job: J, states: frozenset[str] | None) -> None:
        """Classify a job that the caller knows better than the last list."""
        self._noted[id_] = self._clock()
        self.keep(id_, job, states)

    def want(self, id_: int) -> None:
        """Have a job of interest fetched by the next reading, whatever its states."""
        self._wanted.add(id_)

    def keep(self, id_: int, job: J, states: frozenset[str] | None) -> None:
        """Classify a job as of interest: it is fetched again when its states differ from these."""
        self._put(id_, job, None)
        self._states[id_] = states

    def pass_over(self, id_: int) -> None:
        """Classify a job as of no interest."""
        self._put(id_, None, None)
        self.foreign.add(id_)

    def set_aside(self, id_: int, job: UnreadJob) -> None:
        """Classify a job as unreadable."""
        self._put(id_, None, job)

    def drop(self, id_: int) -> None:
        """Forget a job."""
        self._put(id_, None, None)

    def _put(self, id_: int, job: J | None, unreadable: UnreadJob | None) -> None:
        before = self.jobs.pop(id_, None), self.unreadable.pop(id_, None)
        self.foreign.discard(id_)
        self._states.pop(id_, None)
        if job is not None:
            self.jobs[id_] = job
        elif unreadable is not None:
            self.unreadable[id_] = unreadable
        self.changes += before != (job, unreadable)

    async def read(
        self, *, wanted: Collection[int] = (), surely: bool = True, complete: bool = False
    ) -> JobReading:
        """Read Slurm once.

        Args:
            wanted: Jobs of interest to fetch even if their states are unchanged.
            surely: Decisions will be based on this reading even if it repeats the last one.
            complete: Decisions will be based on what is absent.

        Raises:
            SlurmError: The reading is incomplete; what has been classified so far is kept.
        """
        is_exact = surely or complete or bool(self._left)
        listed = await self._lists.read(settled=self.foreign, surely=is_exact)
        began = self._lists.began
        is_repeated = listed is self._listing and not self._noted
        patience_s = 0.0 if complete else self._pace.patience_s
        if surely or not is_repeated or began >= self._trusted_until:
            if await self._forgot_after_restart(listed.states):
                is_repeated, patience_s = False, 0.0
                listed = await self._lists.read_of_another(listed)
            self._trusted_until = began + _TRUSTED_S
        is_new = not is_repeated or bool(self._left)
        known, unknown = self._news(listed.states, began, patience_s) if is_new else ((), ())
        asked, self._wanted = self._wanted, set()
        portion = unread.portion(
            unknown,
            listed.states,
            most=self._pace.burst,
            known_to_be_odd=self.unreadable,
            likely=self._likely.among(unknown),
        )
        again = {*wanted, *asked} & self.jobs.keys() & listed.states.keys()
        ids = list(dict.fromkeys([*known, *again, *portion.ids]))
        self._listing = None
        try:
            is_read = not (ids or is_new) or await self._reader.fetch(ids, listed.states)
        except SlurmError:
            self._wanted |= asked
            raise
        if is_read and not portion.is_behind_on_arrays:
            self._listing = listed
        return JobReading(began, is_repeated, bool(self._left), portion)

    async def _forgot_after_restart(self, seen: Mapping[int, frozenset[str]]) -> bool:
        """Forget all ids if slurmctld has restarted since these states were read; return whether it has."""
        asked_s = self._clock()
        answer = await self._calls.call("diag", "slurm_get_diag", answer=Diagnosis)
        statistics = answer.statistics
        if (reported_s := statistics.req_time.positive) is not None:
            self.time = reported_s, asked_s, self._clock()
        self.cycle_s = statistics.schedule_cycle_last / 1_000_000
        counts_since = statistics.req_time_start.positive or 0
        if not await self._incarnation.may_be_another(self._calls, counts_since):
            return False
        self._reader.restart()
        forgotten = self.jobs.keys() - (self._noted.keys() - seen.keys())
        self._likely.remember(forgotten)
        for id_ in forgotten:
            self.drop(id_)
        self.foreign.clear()
        self.unreadable.clear()
        self.changes += 1
        return True

    def _news(
        self, seen: Mapping[int, frozenset[str]], began: float, patience_s: float
    ) -> tuple[Sequence[int], Sequence[int]]:
        """Return the jobs to fetch: those of interest, and those not classified yet.

        A state that says everything is applied without a fetch, and new pending jobs may wait.
        """
        self.changes += 1
        vanished = self._vanished(seen, began)
        for id_, states in seen.items():
            job = self.jobs.get(id_)
            updated = None if job is None else self._reader.update(job, states)
            if updated is not None:
                self.keep(id_, updated, states)
        changed = [id_ for id_, states in seen.items() if self._must_fetch(id_, states)]
        new = (id_ for id_ in changed if seen[id_] == _PENDING and id_ not in self.jobs)
        since = {id_: self._left.get(id_, began) for id_ in new}
        self._left = {id_: at for id_, at in since.items() if began - at < patience_s}
        known = [id_ for id_ in changed if id_ in self.jobs]
        others = (id_ for id_ in changed if id_ not in self.jobs and id_ not in self._left)
        # Jobs that could not be decoded last time come last, or they would crowd out the rest.
        return [*known, *vanished], sorted(others, key=self.unreadable.__contains__)

    def _vanished(self, seen: Mapping[int, frozenset[str]], began: float) -> list[int]:
        """Drop jobs that Slurm no longer lists; return those to fetch a last time."""
        self.foreign &= seen.keys()
        for id_ in self.unreadable.keys() - seen.keys():
            del self.unreadable[id_]
        for id_ in [id_ for id_, at in self._noted.items() if id_ in seen or at < began]:
            del self._noted[id_]
        missing = [id_ for id_ in self.jobs if id_ not in seen and id_ not in self._noted]
        for id_ in missing:
            if self._reader.forget(id_, self.jobs[id_]):
                self.drop(id_)
        return [id_ for id_ in missing if id_ in self.jobs]

    def _must_fetch(self, id_: int, states: frozenset[str]) -> bool:
        if id_ in self.foreign:
            return False
        if (unreadable := self.unreadable.get(id_)) is not None:
            return unreadable.states != states
        return id_ not in self.jobs or self._states[id_] != states
