"""The states of all jobs, for a cost in proportion to their number.

slurmrestd needs time in proportion to the square of a list's length to free it, and answers only then: 44 000 jobs took
14 to 17 s of CPU (26.05.5; `slurm_data_free` looks for each entry from the list's beginning). A client that gives up
after ten seconds and asks again soon keeps all of its threads busy. So where there are very many jobs, they are asked
for by their ids, a thousand a request, for 5 to 10 µs each; ids without a job are just not in the answer.

Which ids there are follows from what was listed before and from the next id that slurmctld will assign, which `/conf`
tells since Slurm 26.05. Earlier Slurms list all jobs at once, whatever that takes.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

from bridge.slurm import accounting, decode
from slurmclient.watching import states as slurm_states
from slurmclient.watching.states import State, States, StatesAnswer
from slurmruntime.slurm import wire
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.slurm.errors import InStandby, LostReply, Malformed, TooOld, translating
from slurmruntime.values.ids import JobId

BATCH: Final = 1000
"""Ids per /jobs/state/ request: the cost grows faster than linearly, and a URL of 119 kB is
rejected."""

AT_ONCE: Final = 3000
"""Longest list that is read as a whole: 0.07 s of slurmrestd's CPU, three times what it takes to ask by ids."""

_NEVER_AT_ONCE = 30_000
"""Longest list that whoever knows no ids yet reads as a whole, in 7 s. To ask for every id instead
takes longer where Slurm has assigned millions."""

_SETTLED = 5000
"""Jobs of strangers that one reading asks about, in turn: of them only their end is of interest."""

_COUNTED_S = 10.0
"""How long a long list is believed while slurmctld counts no submit, no start, no completion and no
`scancel`. What it does not count is seen so much later: a cancellation by slurmrestd or by `scancel
--ctld`, a time limit, a requeue. Whoever gets the room of such a job is counted when it starts."""

_DOUBTFUL_IDS = 100_000
"""Ids below the next one that are asked for when ids may have been assigned again: after a crash those
since slurmctld last saved its state, and those since they have started again after `MaxJobId`."""


@dataclass(frozen=True, slots=True)
class JobListing:
    """Base states and flags of all jobs, as Slurm listed them."""

    told: States
    states: Mapping[JobId, frozenset[str]]


async def whole(
    client: SlurmClient, *, before: JobListing | None = None, arrays: bool = False
) -> JobListing:
    """Return base states and flags of all jobs, listed at once; `before` itself if nothing has changed.

    10 000 jobs are 380 kB: 0.1 ms to compare, 15 ms to decode.

    Args:
        client: Slurm.
        before: The last listing.
        arrays: Include the records of arrays, each with the states of the tasks that it stands for:
            `3:RUNNING`.

    Raises:
        SlurmError: they could not be read.
    """
    told = await _listed(client, None, before.told if before else None)
    if before and before.told is told:
        return before
    return JobListing(told, by_id(told, arrays=arrays))


async def states(client: SlurmClient, ids: Collection[JobId]) -> Mapping[JobId, frozenset[str]]:
    """Return base states and flags of some jobs; unknown jobs are missing from the result.

    It does not accept a sluid, for which slurmrestd would return all jobs.
    """
    found: dict[JobId, frozenset[str]] = {}
    for batch in _batches(sorted(ids)):
        found |= by_id(await _listed(client, batch, None))
    return found


class Lists:
    """Lists all jobs again and again; what they are is somebody else's concern."""

    def __init__(
        self,
        client: SlurmClient,
        *,
        clock: Callable[[], float],
        arrays: bool = False,
        named: Callable[[], Iterable[JobId]] = tuple,
    ) -> None:
        """Start with nothing listed.

        Args:
            client: Slurm.
            clock: Returns monotonic seconds.
            arrays: Include the records of arrays, as `whole` does.
            named: Returns ids that may be above the next one, as ids start again after `MaxJobId`.
        """
        self._client = client
        self._clock = clock
        self._arrays = arrays
        self._named = named
        self._last: JobListing | None = None
        self._next_id = 0
        """All jobs with lower ids are in the last listing; 0: none is above its highest."""
        self._turn = 0
        self._failures = 0
        """Whole lists in a row that were not answered in time."""
        self._counted: tuple[int, ...] = ()
        """What slurmctld had counted before the last list; () if that was short."""
        self._counted_until = 0.0
        self.began = 0.0
        """When the last listing's first request was sent."""
        self.took_s = 0.0
        """How long it took; 0 if none was needed, or there would have been none without the time limit."""

    async def read(
        self, *, settled: Collection[JobId] = frozenset(), surely: bool = True
    ) -> JobListing:
        """Return base states and flags of all jobs; the last listing itself if nothing has changed.

        Args:
            settled: Jobs whose states do not matter. If there are very many jobs, theirs may be of
                an earlier reading.
            surely: False: of many jobs, the last listing will do while slurmctld counts nothing.

        Raises:
            SlurmError: they could not be read.
        """
        began, before = self._clock(), self._last
        last_counted, self._counted = self._counted, ()  # after a failure, all is listed again
        told = await self._diagnosis_if_long()
        counted = _counted(told) if told else ()
        is_same = bool(counted) and counted == last_counted and began < self._counted_until
        if before and is_same and not surely:
            self._counted, self.took_s = counted, 0.0
            return before
        next_id = await self._next_assigned() if told and self._is_long(told) else None
        if next_id is None:
            self._last = await self._at_once()
        else:
            self._last = await self._by_ids(*self._to_ask(next_id, settled))
        self._next_id, self._failures, self._counted = next_id or 0, 0, counted
        self.began, self._counted_until = began, began + _COUNTED_S
        self.took_s = 0.0 if counted and self._last is before else self._clock() - began
        return self._last

    async def read_of_another(self, listing: JobListing) -> JobListing:
        """Return the same of a slurmctld that may have assigned ids again; `listing` itself if that has all.

        Raises:
            SlurmError: they could not be read.
        """
        if not self._next_id:
            return listing
        self._next_id = max(1, self._next_id - _DOUBTFUL_IDS)
        return await self.read()

    async def _diagnosis_if_long(self) -> wire.Statistics | None:
        """Return what slurmctld counts if there may be many jobs; of few, a list costs less than that."""
        if self._last and len(self._last.told.listed) <= AT_ONCE and self._failures <= 1:
            return None
        answer = await self._client.call("diag", "slurm_get_diag", answer=wire.Diagnosis)
        return answer.statistics

    def _is_long(self, told: wire.Statistics) -> bool:
        live = told.jobs_pending + told.jobs_running
        return self._failures > 1 or self._last is not None or live > _NEVER_AT_ONCE

    async def _next_assigned(self) -> int | None:
        """Return the next id that slurmctld will assign; None if all jobs have to be listed at once."""
        try:
            return (await accounting.numbering(self._client)).next_id
        except (TooOld, Malformed):
            return None

    def _to_ask(self, next_id: int, settled: Collection[JobId]) -> tuple[set[int], range]:
        """Return the known ids to ask for, and the new ones, of which there may be millions."""
        known = {number for each in self._known() for number in numbers(each.job_id)}
        first = self._next_id or max(known, default=0) + 1
        if next_id < first:
            first = max(1, next_id - _DOUBTFUL_IDS)
        in_turn = sorted(settled)[self._turn : self._turn + _SETTLED]
        self._turn = self._turn + _SETTLED if in_turn else 0
        passed_over = set(settled).difference(in_turn)
        new = range(first, next_id)
        asked = {*(known - passed_over), *self._named()}
        return {each for each in asked if each not in new}, new

    async def _at_once(self) -> JobListing:
        try:
            return await whole(self._client, before=self._last, arrays=self._arrays)
        except InStandby:
            raise
        except LostReply:
            self._failures += 1
            raise

    async def _by_ids(self, asked: set[int], new: range) -> JobListing:
        before = {each.job_id: each for each in self._known()}
        found = {
            text: each
            for text, each in before.items()
            if (number := numbers(text)[0]) not in asked and number not in new
        }
        for batch in _batches(chain(sorted(asked), new)):
            told = await _listed(self._client, batch, None)
            found.update((each.job_id, each) for each in told.listed)
        if self._last is not None and found == before:
            return self._last
        told = States(b"", tuple(found.values()))
        return JobListing(told, by_id(told, arrays=self._arrays))

    def _known(self) -> Sequence[State]:
        return self._last.told.listed if self._last else ()


def _counted(told: wire.Statistics) -> tuple[int, ...]:
    return (
        told.req_time_start.positive or 0,
        told.jobs_submitted,
        told.jobs_started,
        told.jobs_completed,
        told.jobs_canceled,
        told.jobs_failed,
    )


def numbers(job_id: str) -> tuple[int, ...]:
    """Return the ids that a job is told of by: its array's or heterogeneous job's first, and its own."""
    own = job_id.partition("_")[0].partition("+")[0]
    if not (own.isascii() and own.isdecimal()):
        return (0,)
    whose = slurm_states.component(job_id)
    return (whose[0], int(own)) if whose is not None and whose[1] else (int(own),)


def by_id(told: States, *, arrays: bool = False) -> dict[JobId, frozenset[str]]:
    """Return base states and flags by job; those of arrays, if wanted, with their tasks: `3:RUNNING`."""
    states: dict[JobId, frozenset[str]] = {}
    tasks: dict[JobId, set[str]] = {}
    for each in told.listed:
        if (found := slurm_states.component(each.job_id)) is not None:
            id_, offset = JobId(found[0]), found[1]
            state = decode.component_states(offset, each.state)
            states[id_] = states[id_] | state if id_ in states else state
        elif arrays:
            record, _, task = each.job_id.partition("_")
            if record.isascii() and record.isdecimal():
                tasks.setdefault(JobId(int(record)), set()).update(
                    f"{task}:{state}" for state in each.state
                )
    for id_, those in tasks.items():
        states[id_] = states.get(id_, frozenset()) | those
    return states


async def _listed(client: SlurmClient, ids: Sequence[int] | None, before: States | None) -> States:
    label = "job.states"
    answer = await client.call(
        label, slurm_states.OPERATION, query={"job_id": ids}, answer=StatesAnswer
    )
    with translating(label):
        return slurm_states.told(answer, before)


def _batches(ids: Iterable[int]) -> Iterator[Sequence[int]]:
    rest = iter(ids)
    while batch := list(islice(rest, BATCH)):
        yield batch
