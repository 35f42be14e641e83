"""List the states of all jobs, at a cost in proportion to their number.

slurmrestd needs time in proportion to the square of a list's length to free it, and answers only then: 44 000 jobs took
14 to 17 s of CPU (26.05.5; `slurm_data_free` looks for each entry from the list's beginning). A client that gives up
after ten seconds and asks again soon keeps all of its threads busy. So if there are very many jobs, they are requested
by their ids, a thousand per request, for 5 to 10 µs each; ids without a job are just not in the answer.

The ids follow from the last list and from the next id that slurmctld will assign, which `/conf` contains since Slurm
26.05. Earlier Slurms list all jobs at once, however long that takes.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

from slurmclient.errors import InStandby, LostReply, Malformed, TooOld
from slurmclient.watching import states as slurm_states
from slurmclient.watching.slurmctld import Calls, Configuration, Diagnosis, Statistics
from slurmclient.watching.states import State, States, StatesAnswer

BATCH: Final = 1000
"""Ids per /jobs/state/ request: the cost grows faster than linearly, and a URL of 119 kB is
rejected."""

AT_ONCE: Final = 3000
"""Longest list that is read as a whole: 0.07 s of slurmrestd's CPU, three times what it takes to ask by ids."""

_NEVER_AT_ONCE = 30_000
"""Longest list that is read as a whole while no ids are known yet, in 7 s. Asking for every id instead
takes longer if Slurm has assigned millions."""

_SETTLED = 5000
"""Foreign jobs that one reading asks about, in turn: only their end matters."""

_COUNTED_S = 10.0
"""How long a long list is trusted while slurmctld counts no submit, no start, no completion and no
`scancel`. What it does not count is seen that much later: a cancellation by slurmrestd or by `scancel
--ctld`, a time limit, a requeue. The job that gets the room of such a job is counted when it starts."""

_DOUBTFUL_IDS = 100_000
"""Ids below the next one that are requested when ids may have been assigned again: after a crash, those
assigned since slurmctld last saved its state; after `Maxint`, those since numbering started again."""


@dataclass(frozen=True, slots=True)
class JobListing:
    """Base states and flags of all jobs, as Slurm listed them."""

    raw: States
    states: Mapping[int, frozenset[str]]


async def all_jobs(
    calls: Calls, *, before: JobListing | None = None, arrays: bool = False
) -> JobListing:
    """Return base states and flags of all jobs, in one list; `before` itself if nothing has changed.

    10 000 jobs are 380 kB: 0.1 ms to compare, 15 ms to decode. With `arrays`, include the records of
    arrays, each with the states of the tasks that it stands for: `3:RUNNING`.
    """
    raw = await _listed(calls, None, before.raw if before else None)
    if before and before.raw is raw:
        return before
    return JobListing(raw, by_id(raw, arrays=arrays))


async def states(calls: Calls, ids: Collection[int]) -> Mapping[int, frozenset[str]]:
    """Return base states and flags of some jobs; unknown jobs are missing from the result.

    It does not accept a sluid, for which slurmrestd would return all jobs.
    """
    by_job: dict[int, frozenset[str]] = {}
    for batch in _batches(sorted(ids)):
        by_job |= by_id(await _listed(calls, batch, None))
    return by_job


class Lists:
    """Lists all jobs repeatedly, without classifying them. Any reading may raise `SlurmError`."""

    def __init__(
        self,
        calls: Calls,
        *,
        clock: Callable[[], float],
        arrays: bool = False,
        named: Callable[[], Iterable[int]] = tuple,
    ) -> None:
        """Start with nothing listed.

        Args:
            clock: Returns monotonic seconds.
            arrays: Include the records of arrays, as `all_jobs` does.
            named: Returns ids that may be above the next one, as ids start again after `Maxint`.
        """
        self._calls = calls
        self._clock = clock
        self._arrays = arrays
        self._named = named
        self._last: JobListing | None = None
        self._next_id = 0
        """All jobs with lower ids are in the last listing; 0: no job has an id above its highest."""
        self._turn = 0
        self._failures = 0
        """Whole lists in a row that were not answered in time."""
        self._counted: tuple[int, ...] = ()
        """What slurmctld had counted before the last list; () if that was short."""
        self._counted_until = 0.0
        self.began = 0.0
        """When the last listing's first request was sent."""
        self.took_s = 0.0
        """How long it took; 0 if none was needed, or if it only confirmed a list that had been trusted long enough."""

    async def read(
        self, *, settled: Collection[int] = frozenset(), surely: bool = True
    ) -> JobListing:
        """Return base states and flags of all jobs; the last listing itself if nothing has changed.

        Args:
            settled: Jobs whose states do not matter. If there are very many jobs, theirs may be of
                an earlier reading.
            surely: False: of many jobs, the last listing will do while slurmctld counts nothing.
        """
        began, before = self._clock(), self._last
        last_counted, self._counted = self._counted, ()  # after a failure, all is listed again
        statistics = await self._diagnosis_if_long()
        counted = _counted(statistics) if statistics else ()
        is_same = bool(counted) and counted == last_counted and began < self._counted_until
        if before and is_same and not surely:
            self._counted, self.took_s = counted, 0.0
            return before
        is_long = statistics is not None and self._is_long(statistics)
        next_id = await self._next_assigned() if is_long else None
        if next_id is None:
            self._last = await self._at_once()
        else:
            self._last = await self._by_ids(*self._to_ask(next_id, settled))
        self._next_id, self._failures, self._counted = next_id or 0, 0, counted
        self.began, self._counted_until = began, began + _COUNTED_S
        self.took_s = 0.0 if counted and self._last is before else self._clock() - began
        return self._last

    async def read_of_another(self, listing: JobListing) -> JobListing:
        """Return the listing of a slurmctld that may have assigned ids again; `listing` if it has all jobs."""
        if not self._next_id:
            return listing
        self._next_id = max(1, self._next_id - _DOUBTFUL_IDS)
        return await self.read()

    async def _diagnosis_if_long(self) -> Statistics | None:
        """Return slurmctld's counters if there may be many jobs; a list of few jobs costs less than that."""
        if self._last and len(self._last.raw.listed) <= AT_ONCE and self._failures <= 1:
            return None
        answer = await self._calls.call("diag", "slurm_get_diag", answer=Diagnosis)
        return answer.statistics

    def _is_long(self, statistics: Statistics) -> bool:
        live = statistics.jobs_pending + statistics.jobs_running
        return self._failures > 1 or self._last is not None or live > _NEVER_AT_ONCE

    async def _next_assigned(self) -> int | None:
        """Return the next id that slurmctld will assign; None if all jobs have to be listed at once."""
        try:
            answer = await self._calls.call("conf", "slurm_get_conf", answer=Configuration)
        except (TooOld, Malformed):
            return None
        is_numbered = bool(answer.slurm_conf.last_job_id)
        return answer.slurm_conf_meta.next_job_id.positive if is_numbered else None

    def _to_ask(self, next_id: int, settled: Collection[int]) -> tuple[set[int], range]:
        """Return the known ids to ask for, and the range of new ones, which may be millions."""
        known = {number for state in self._known() for number in numbers(state.job_id)}
        first = self._next_id or max(known, default=0) + 1
        if next_id < first:
            first = max(1, next_id - _DOUBTFUL_IDS)
        in_turn = sorted(settled)[self._turn : self._turn + _SETTLED]
        self._turn = self._turn + _SETTLED if in_turn else 0
        passed_over = set(settled).difference(in_turn)
        new = range(first, next_id)
        asked = {*(known - passed_over), *self._named()}
        return {id_ for id_ in asked if id_ not in new}, new

    async def _at_once(self) -> JobListing:
        try:
            return await all_jobs(self._calls, before=self._last, arrays=self._arrays)
        except InStandby:
            raise
        except LostReply:
            self._failures += 1
            raise

    async def _by_ids(self, asked: set[int], new: range) -> JobListing:
        before = {state.job_id: state for state in self._known()}
        by_text = {
            text: state
            for text, state in before.items()
            if (number := numbers(text)[0]) not in asked and number not in new
        }
        for batch in _batches(chain(sorted(asked), new)):
            answer = await _listed(self._calls, batch, None)
            by_text.update((state.job_id, state) for state in answer.listed)
        if self._last is not None and by_text == before:
            return self._last
        raw = States(b"", tuple(by_text.values()))
        return JobListing(raw, by_id(raw, arrays=self._arrays))

    def _known(self) -> Sequence[State]:
        return self._last.raw.listed if self._last else ()


def _counted(statistics: Statistics) -> tuple[int, ...]:
    return (
        statistics.req_time_start.positive or 0,
        statistics.jobs_submitted,
        statistics.jobs_started,
        statistics.jobs_completed,
        statistics.jobs_canceled,
        statistics.jobs_failed,
    )


def numbers(job_id: str) -> tuple[int, ...]:
    """Return the ids under which Slurm lists a job: its heterogeneous job's, if it has one, and its own."""
    own = job_id.partition("_")[0].partition("+")[0]
    if not slurm_states.is_number(own):
        return (0,)
    whose = slurm_states.component(job_id)
    return (whose[0], int(own)) if whose is not None and whose[1] else (int(own),)


def by_id(raw: States, *, arrays: bool = False) -> dict[int, frozenset[str]]:
    """Return base states and flags by job; with `arrays`, those of arrays, too, with their tasks: `3:RUNNING`."""
    states: dict[int, frozenset[str]] = {}
    tasks: dict[int, set[str]] = {}
    for entry in raw.listed:
        if (component := slurm_states.component(entry.job_id)) is not None:
            id_, offset = component[0], component[1]
            state = slurm_states.component_states(offset, entry.state)
            states[id_] = states[id_] | state if id_ in states else state
        elif arrays:
            record, _, task = entry.job_id.partition("_")
            if record.isascii() and record.isdecimal():
                tasks.setdefault(int(record), set()).update(
                    f"{task}:{state}" for state in entry.state
                )
    for id_, of_tasks in tasks.items():
        states[id_] = states.get(id_, frozenset()) | of_tasks
    return states


async def _listed(calls: Calls, ids: Sequence[int] | None, before: States | None) -> States:
    label = "job.states"
    answer = await calls.call(
        label, slurm_states.OPERATION, query={"job_id": ids}, answer=StatesAnswer
    )
    return slurm_states.decode(answer, before, label)


def _batches(ids: Iterable[int]) -> Iterator[Sequence[int]]:
    rest = iter(ids)
    while batch := list(islice(rest, BATCH)):
        yield batch
