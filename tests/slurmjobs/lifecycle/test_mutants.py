"""The histories are worth their time only if they notice when a line of the machine is wrong: each mutant must be found."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.make.mutants import Changed, hunted

pytestmark = pytest.mark.slow

HISTORIES = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMutant:
    """A line of `jobs`, changed."""

    name: str
    before: str
    after: str
    file: str = "lifecycle/table.py"


MUTANTS = [
    JobMutant(
        name="submits before it is sure that there is none",
        before="    if not facts.seen.surely_none:\n        return JobColumn.UNKNOWN\n    if not needs_archive",
        after="    if False:\n        return JobColumn.UNKNOWN\n    if not needs_archive",
    ),
    JobMutant(
        name="does not ask what became of a job that is forgotten",
        before="return facts.job.status.job_id is not None or not facts.is_untried",
        after="return facts.job.status.job_id is not None",
    ),
    JobMutant(
        name="leaves the jobs of earlier attempts alone",
        before="if job is not place.job and job.phase is not JobPhase.ENDED",
        after="if False",
    ),
    JobMutant(
        name="takes an earlier attempt's job for the present one",
        before="candidates = [job for job in facts.seen.jobs if job.mark.attempt == attempt]",
        after="candidates = list(facts.seen.jobs)",
    ),
    JobMutant(
        name="submits without the finalizer",
        before="        return JobRow.NEW\n",
        after="        pass\n",
    ),
    JobMutant(
        name="lets a deleted one go with its job",
        before="            none=rules.remove_finalizer,\n            live=_CANCELLING,",
        after="            none=rules.remove_finalizer,\n            live=(rules.remove_finalizer, rules.remove_finalizer, rules.remove_finalizer),",
    ),
    JobMutant(
        name="forgets to submit",
        before="none=rules.submit,",
        after="none=rules.report_suspended,",
    ),
    JobMutant(
        name="suspends in words only",
        before="live=(rules.supersede, rules.supersede, rules.supersede),",
        after="live=_REPORTING,",
    ),
    JobMutant(
        name="cancels without beginning another attempt",
        before="live=(rules.supersede, rules.supersede, rules.supersede),",
        after="live=_CANCELLING,",
    ),
    JobMutant(
        name="gives up a job whose end slurmdbd knows",
        before="        ArchiveFinding.ENDED: JobColumn.PURGED,",
        after="        ArchiveFinding.ENDED: JobColumn.LOST,",
    ),
    JobMutant(
        name="takes every end for a good one",
        file="lifecycle/outcome.py",
        before='phase="Succeeded" if end is JobEnd.COMPLETED else "Failed",',
        after='phase="Succeeded",',
    ),
    JobMutant(
        name="calls it done before its results are there",
        file="lifecycle/rules.py",
        before="if case.object.spec.results and has_run:",
        after="if False:",
    ),
    JobMutant(
        name="loses a job whose results are being copied",
        before="none=rules.collect,",
        after="none=rules.report_lost,",
    ),
    JobMutant(
        name="takes results that were given up for copied",
        file="lifecycle/rules.py",
        before="if collection.state is CopyState.DONE:",
        after="if collection.state is not CopyState.NOT_YET:",
    ),
    JobMutant(
        name="takes the results of an earlier run for this one's",
        file="companions/collecting.py",
        before='return f"{job.status.job_id}-{job.status.restarts}"',
        after='return f"{job.status.job_id}"',
    ),
    JobMutant(
        name="keeps the job of the attempt before in the status",
        file="lifecycle/report.py",
        before="base = before if new.attempt == before.attempt else SlurmJobStatus()",
        after="base = before",
    ),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_histories_find_a_machine_that(mutant: JobMutant, tmp_path: Path) -> None:
    change = Changed(file=f"slurmjobs/{mutant.file}", before=mutant.before, after=mutant.after)
    histories = f"for seed in range({HISTORIES}): play(seed)"
    program = f"from tests.slurmjobs.lifecycle.world import play\n{histories}"

    hunt = hunted(change, tmp_path, "-c", program, package="slurmjobs")

    assert hunt.returncode == 1, hunt.stderr or "it survived"
    assert "\nAssertionError: " in hunt.stderr, hunt.stderr
