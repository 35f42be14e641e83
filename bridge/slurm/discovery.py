"""Which placeholders of ours exist in Slurm, and how they are: one cheap reading at a time.

Slurm cannot be asked for "the jobs with this mark", and a full list of 10 000 jobs is 48 MB. So a reading takes the ids and
states of all jobs (/jobs/state/, 38 bytes each) and looks closer only at those ids it has not classified yet and at those
of ours whose state has changed. A job is classified by its `admin_comment`, which a submit carries from the beginning and
only root and SlurmUser can write.

That an id means the same job as before holds as long as slurmctld has not been restarted: after a crash it may give the ids
of the last seconds to others. So a reading that brings news, or is to answer a question, also asks when slurmctld started;
if that has changed, all ids are new. (It seems to start at midnight UTC, too, when it sets its counters to zero: then every
job is looked at again, once a day.) A reading that only repeats the last one, and that nobody asked for, concludes nothing:
there that question is put now and then.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from bridge.domain.ids import ClusterId, JobId, WorkloadKey
from bridge.domain.model.jobs import JobEnd, JobPhase, SlurmJob
from bridge.domain.model.placeholder import Identity
from bridge.slurm import jobs, wire
from bridge.slurm.client import SlurmClient
from bridge.slurm.decode import Stranger
from bridge.slurm.errors import Malformed, NotFound, SlurmError
from bridge.slurm.jobs import JobListing

_TRUSTED_S = 10.0
"""For so long ids are trusted without asking, as long as every reading repeats the one before."""

_COMPLETED = frozenset({"COMPLETED"})
_PENDING = frozenset({"PENDING"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One whole, successful reading."""

    sequence: int
    """Counts them; two that follow each other were read one after the other."""
    began_monotonic: float
    """When its first request was sent, by the clock given to `Discovery`: what was written later may be missing."""
    jobs: Mapping[JobId, SlurmJob]
    """This cluster's placeholders, ended ones too until Slurm purges them (MinJobAge)."""
    by_uid: Mapping[WorkloadKey, tuple[SlurmJob, ...]]
    """The same by the uid of their workload, oldest id first."""
    is_repeated: bool
    """Slurm listed the very jobs and states of the reading before, strangers' included."""
    is_whole: bool
    """Every job that was listed has been classified: only then absence says something."""
    unreadable: Mapping[JobId, str]
    """Jobs that are, or may be, ours and cannot be read, and why: to be left alone."""
    unsure: frozenset[WorkloadKey] = frozenset()
    """The workloads of those, where that much can be read."""


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """A job that is set aside."""

    why: str
    workload: WorkloadKey | None
    states: frozenset[str] | None
    """Those it was looked at with: it is looked at again when they change. None: with the next reading."""


OnUnreadable = Callable[[JobId, str], None]
"""Hears of each look at a job that could not be read as it is, and why."""

OnSettled = Callable[[JobId], None]
"""Hears that such a job is readable by now, or gone."""


def _ignore_unreadable(_id: JobId, _why: str) -> None:
    pass


def _ignore_settled(_id: JobId) -> None:
    pass


class Discovery:
    """Remembers what it has classified. One reading at a time; a failed one raises and leaves the last snapshot true."""

    def __init__(
        self,
        client: SlurmClient,
        cluster: ClusterId,
        *,
        clock: Callable[[], float],
        concurrency: int = 4,
        patience_s: float = 0.0,
        on_unreadable: OnUnreadable = _ignore_unreadable,
        on_settled: OnSettled = _ignore_settled,
    ) -> None:
        """Begin with nothing known: the first reading looks at every job once.

        Args:
            client: Shared with those who submit: keep `concurrency` below its connections.
            cluster: Placeholders of other clusters are strangers.
            clock: Monotonic seconds.
            concurrency: Jobs looked at at a time.
            patience_s: For so long a new job may be pending before it is looked at: most run by then, and are looked at once
                instead of twice.
            on_unreadable: Where to report jobs that cannot be read as they are; told again at each look.
            on_settled: Where to report that one of those is readable by now, or gone.
        """
        self._client = client
        self._cluster = cluster
        self._clock = clock
        self._concurrency = concurrency
        self._reading = asyncio.Lock()
        self._last: Snapshot | None = None
        """The last one; None once something of it has changed."""
        self._sequence = 0
        self._listing: JobListing | None = None
        """Of the last whole reading."""
        self._controller_start = 0
        self._trusted_until = 0.0
        self._must_forget = False
        self._ours: dict[JobId, SlurmJob] = {}
        self._strangers: set[JobId] = set()
        self._unreadable: dict[JobId, _Unreadable] = {}
        self._reported: set[JobId] = set()
        self._on_unreadable = on_unreadable
        self._on_settled = on_settled
        self._noted: dict[JobId, float] = {}
        self._changed: set[JobId] = set()
        self._patience_s = patience_s
        self._left: dict[JobId, float] = {}
        """New jobs that are still pending: since when they are left alone."""

    def note_submitted(self, job_id: JobId, identity: Identity) -> None:
        """Take in our own submit's answer: it needs no closer look before it starts."""
        known = self._ours.get(job_id)
        if known is not None and known.identity.uid == identity.uid:
            return
        self._strangers.discard(job_id)
        self._unreadable.pop(job_id, None)
        self._noted[job_id] = self._clock()
        self._last = None
        self._ours[job_id] = SlurmJob(
            id=job_id,
            sluid=None,
            phase=JobPhase.WAITING,
            states=frozenset({"PENDING"}),
            identity=identity,
        )

    def note_changed(self, job_id: JobId) -> None:
        """Take in that we have changed something its state does not show: the next reading looks at it again."""
        self._changed.add(job_id)

    def reset(self) -> None:
        """Trust no id any more: the next reading looks at every job again. Call it on becoming leader."""
        self._must_forget = True

    async def refresh(
        self, *, reasons_for: Collection[JobId] = (), surely: bool = True, whole: bool = False
    ) -> Snapshot:
        """Read Slurm once.

        Args:
            reasons_for: Jobs to look at although their state is the same: why they wait, when they end.
            surely: Something will be concluded from this reading even if it repeats the last one.
            whole: Something will be concluded from what it does not show.

        Raises:
            SlurmError: the reading is not whole; what was classified meanwhile is kept.
        """
        async with self._reading:
            began = self._clock()
            listed = await jobs.listing(self._client, before=self._listing)
            is_repeated = listed is self._listing and not self._noted and not self._must_forget
            patience_s = 0.0 if whole else self._patience_s
            if surely or not is_repeated or began >= self._trusted_until:
                if await self._forgot_what_may_be_others(listed.states):
                    is_repeated, patience_s = False, 0.0
                self._trusted_until = began + _TRUSTED_S
            nothing_new = is_repeated and not self._left
            news = () if nothing_new else self._news(listed.states, began, patience_s=patience_s)
            changed, self._changed = self._changed, set()
            asked = (*reasons_for, *changed)
            wanted = (id_ for id_ in asked if id_ in listed.states and id_ in self._ours)
            self._listing = None
            try:
                if await self._look_at(dict.fromkeys([*news, *wanted]), listed.states):
                    self._listing = listed
            except SlurmError:
                self._changed |= changed
                raise
            return self._snapshot(began, is_repeated=is_repeated)

    async def _forgot_what_may_be_others(self, seen: Mapping[JobId, frozenset[str]]) -> bool:
        """Asked after the states: if nothing has changed by then, the states are of the slurmctld we know."""
        answer = await self._client.call("diag", "GET", "/diag/", answer=wire.Diagnosis)
        start = answer.statistics.req_time_start.positive or 0
        if not self._must_forget and start == self._controller_start:
            return False
        for id_ in self._ours.keys() - (self._noted.keys() - seen.keys()):
            del self._ours[id_]
        self._strangers.clear()
        self._unreadable.clear()
        self._controller_start = start
        self._must_forget = False
        self._last = None
        return True

    def _news(
        self, seen: Mapping[JobId, frozenset[str]], began: float, *, patience_s: float
    ) -> list[JobId]:
        """The jobs to look at; a state that says it all is taken in without a look, and new ones may be left alone a while."""
        vanished = self._vanished(seen, began)
        for id_, states in seen.items():
            known = self._ours.get(id_)
            if known is not None and known.states != states and _has_just_completed(known, states):
                self._ours[id_] = replace(
                    known, phase=JobPhase.ENDED, states=states, end=JobEnd.COMPLETED
                )
        self._last = None
        changed = [id_ for id_, states in seen.items() if self._needs_look(id_, states)]
        new = (id_ for id_ in changed if seen[id_] == _PENDING and id_ not in self._ours)
        since = {id_: self._left.get(id_, began) for id_ in new}
        self._left = {id_: at for id_, at in since.items() if began - at < patience_s}
        return [*(id_ for id_ in changed if id_ not in self._left), *vanished]

    def _vanished(self, seen: Mapping[JobId, frozenset[str]], began: float) -> list[JobId]:
        """Drop what Slurm does not list any more; return those of ours that were alive, for a last look."""
        self._strangers &= seen.keys()
        for id_ in self._unreadable.keys() - seen.keys():
            del self._unreadable[id_]
        for id_ in self._reported - seen.keys():
            self._settle(id_)
        for id_ in [id_ for id_, at in self._noted.items() if id_ in seen or at < began]:
            del self._noted[id_]
        missing = [id_ for id_ in self._ours if id_ not in seen and id_ not in self._noted]
        for id_ in missing:
            if self._ours[id_].phase is JobPhase.ENDED:
                del self._ours[id_]
        return [id_ for id_ in missing if id_ in self._ours]

    def _needs_look(self, id_: JobId, states: frozenset[str]) -> bool:
        if id_ in self._strangers:
            return False
        if (unreadable := self._unreadable.get(id_)) is not None:
            return unreadable.states != states
        known = self._ours.get(id_)
        return known is None or known.states != states

    async def _look_at(self, ids: Iterable[JobId], seen: Mapping[JobId, frozenset[str]]) -> bool:
        """Read jobs one by one, some at a time; False if one of them was gone, or has to be looked at again."""
        queue = iter(ids)

        async def take() -> bool:
            return all([await self._look(id_, seen.get(id_)) for id_ in queue])

        try:
            async with asyncio.TaskGroup() as group:
                takers = [group.create_task(take()) for _ in range(self._concurrency)]
        except ExceptionGroup as failures:  # the first says it all: they speak of the same server
            raise failures.exceptions[0] from None
        return all(taker.result() for taker in takers)

    async def _look(self, id_: JobId, states: frozenset[str] | None) -> bool:
        try:
            found = await jobs.job(self._client, id_)
        except NotFound:
            found = None
        except Malformed as error:
            self._set_aside_undecoded(id_, str(error))
            return False
        before = self._ours.pop(id_, None), self._unreadable.pop(id_, None)
        why = ""
        match found:
            case SlurmJob() if found.identity.cluster == self._cluster:
                self._ours[id_] = found
            case Stranger() if found.unreadable and found.cluster in (None, self._cluster):
                why = found.unreadable
                self._unreadable[id_] = _Unreadable(why, found.workload, states)
            case Stranger():
                why = found.odd
                self._strangers.add(id_)
            case SlurmJob():
                self._strangers.add(id_)
            case None:
                pass
        if why:
            self._report(id_, why)
        else:
            self._settle(id_)
        if before != (self._ours.get(id_), self._unreadable.get(id_)):
            self._last = None
        return found is not None

    def _set_aside_undecoded(self, id_: JobId, why: str) -> None:
        """Look at it again with each reading; until then nothing is concluded about its workload, or whoever's it may be."""
        known, unreadable = self._ours.pop(id_, None), self._unreadable.get(id_)
        workload = unreadable.workload if unreadable else known.identity.uid if known else None
        self._unreadable[id_] = _Unreadable(why, workload, None)
        self._last = None
        self._report(id_, why)

    def _report(self, id_: JobId, why: str) -> None:
        self._reported.add(id_)
        self._on_unreadable(id_, why)

    def _settle(self, id_: JobId) -> None:
        if id_ in self._reported:
            self._reported.discard(id_)
            self._on_settled(id_)

    def _snapshot(self, began: float, *, is_repeated: bool) -> Snapshot:
        self._sequence += 1
        last = self._last or self._picture()
        self._last = replace(
            last,
            sequence=self._sequence,
            began_monotonic=began,
            is_repeated=is_repeated,
            is_whole=not self._left and not self._may_hide_one_of_ours(),
        )
        return self._last

    def _may_hide_one_of_ours(self) -> bool:
        """Check whether there is a job that nothing at all could be read of."""
        return any(
            each.states is None and each.workload is None for each in self._unreadable.values()
        )

    def _picture(self) -> Snapshot:
        by_uid: dict[WorkloadKey, tuple[SlurmJob, ...]] = {}
        for id_ in sorted(self._ours):
            job = self._ours[id_]
            by_uid[job.identity.uid] = (*by_uid.get(job.identity.uid, ()), job)
        return Snapshot(
            sequence=self._sequence,
            began_monotonic=0,
            is_repeated=False,
            is_whole=True,
            jobs=MappingProxyType(dict(self._ours)),
            by_uid=MappingProxyType(by_uid),
            unreadable=MappingProxyType({id_: each.why for id_, each in self._unreadable.items()}),
            unsure=frozenset(
                each.workload for each in self._unreadable.values() if each.workload is not None
            ),
        )


def _has_just_completed(known: SlurmJob, states: frozenset[str]) -> bool:
    """It ran, and now says COMPLETED and nothing else: exit code 0, and no cause of ours, which only a cancel has."""
    return known.phase is JobPhase.RUNNING and known.sluid is not None and states == _COMPLETED
