"""The histories are worth their time only if they notice when a line of the machine is wrong: each mutant must be found."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.make.mutants import Changed, hunted

pytestmark = pytest.mark.slow

HISTORIES = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerMutant:
    """A line of the rules of workers or of their places, changed."""

    name: str
    before: str
    after: str
    file: str = "workers/table.py"


MUTANTS = [
    WorkerMutant(
        name="takes what it does not know for drained",
        before="    if not seen.is_sure:\n        return WorkerColumn.UNKNOWN",
        after="    if not seen.is_sure:\n        return WorkerColumn.DRAINED",
    ),
    WorkerMutant(
        name="takes a node that is not listed for drained",
        before="            missing=rules.doubt,\n            in_service=rules.drain,",
        after="            missing=rules.delete,\n            in_service=rules.drain,",
    ),
    WorkerMutant(
        name="believes one reading",
        before="is_quiet = seen.quiet_readings >= _QUIET_READINGS",
        after="is_quiet = seen.quiet_readings >= 1",
    ),
    WorkerMutant(
        name="deletes without a drain",
        before="            in_service=rules.drain,",
        after="            in_service=rules.delete,",
    ),
    WorkerMutant(
        name="does not wait for jobs",
        before="            draining=rules.wait_for_jobs,",
        after="            draining=rules.delete,",
    ),
    WorkerMutant(
        name="lifts anybody's drain",
        file="workers/rules.py",
        before="if node is None or not node.reason.startswith(REASON_PREFIX):",
        after="if node is None:",
    ),
    WorkerMutant(
        name="never lifts its own drain",
        file="workers/rules.py",
        before='    if not drain_reason:\n        return _do("the reason for our',
        after='    if False:\n        return _do("the reason for our',
    ),
    WorkerMutant(
        name="does not drain a cordoned node",
        file="workers/rules.py",
        before="    if facts.cordoned:\n",
        after="    if False:\n",
    ),
    WorkerMutant(
        name="lets evictions have a worker after one reading",
        before="        settling=rules.keep_drained,",
        after="        settling=rules.release,",
    ),
    WorkerMutant(
        name="lets evictions have a worker with jobs",
        before="        draining=rules.keep_drained,",
        after="        draining=rules.release,",
    ),
    WorkerMutant(
        name="never lets evictions have a worker",
        before="        drained=rules.release,",
        after="        drained=rules.keep_drained,",
    ),
    WorkerMutant(
        name="lifts its drain before it protects",
        file="workers/rules.py",
        before='drain is gone", *protection, UndrainWorker())',
        after='drain is gone", UndrainWorker(), *protection)',
    ),
    WorkerMutant(
        name="lets too many go",
        file="workers/choosing.py",
        before="max(len(ordered) - desired, 0)",
        after="max(len(ordered) - desired + 1, 0)",
    ),
    WorkerMutant(
        name="takes a node that it cannot read for gone",
        file="nodesets/plan/placing.py",
        before="if (name in by_name or name not in unreadable)",
        after="if True",
    ),
    WorkerMutant(
        name="lets any taint drive a worker away",
        file="nodesets/plan/placing.py",
        before='evicting = [taint for taint in node.taints if taint.effect == "NoExecute"]',
        after="evicting = [*node.taints]",
    ),
    WorkerMutant(
        name="keeps the worker of a node that is not selected any more",
        file="nodesets/plan/placing.py",
        before="    if not selector.selects(node):\n        return f",
        after="    if False:\n        return f",
    ),
    WorkerMutant(
        name="keeps the worker of a node that is gone",
        file="nodesets/plan/placing.py",
        before="    if node is None or node.is_deleting:\n        return f",
        after='    if node is None:\n        return ""\n    if node.is_deleting:\n        return f',
    ),
    WorkerMutant(
        name="makes a worker where a taint keeps it away",
        file="nodesets/plan/placing.py",
        before="is_tolerated = not untolerated(hard_taints(node), tolerated)",
        after="is_tolerated = True",
    ),
    WorkerMutant(
        name="does not count workers that are missing",
        file="workers/updating.py",
        before="room = most_away - missing - len(renewed)",
        after="room = most_away - len(renewed)",
    ),
    WorkerMutant(
        name="does not count new workers that do not serve yet",
        file="workers/updating.py",
        before="room = most_away - missing - len(renewed)",
        after="room = most_away - missing",
    ),
    WorkerMutant(
        name="does not count those that are drained for the update",
        file="workers/updating.py",
        before="- len(chosen) - ",
        after="- ",
    ),
    WorkerMutant(
        name="does not count those of which it knows nothing",
        file="workers/updating.py",
        before=" - (len(started) - len(known))",
        after="",
    ),
    WorkerMutant(
        name="forgets whom it has chosen",
        file="workers/updating.py",
        before="*chosen, ",
        after="",
    ),
    WorkerMutant(
        name="never replaces a worker that serves",
        file="workers/updating.py",
        before="*serving[: max(room - len(broken), 0)]",
        after="*serving[:0]",
    ),
    WorkerMutant(
        name="never replaces a worker that does not work",
        file="workers/updating.py",
        before="*broken[: max(room, 0)]",
        after="*broken[:0]",
    ),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_histories_find_a_machine_that(mutant: WorkerMutant, tmp_path: Path) -> None:
    change = Changed(file=f"slurmoperator/{mutant.file}", before=mutant.before, after=mutant.after)
    both = "play(seed); play(seed, has_updates=True); play_on_nodes(seed)"
    histories = f"for seed in range({HISTORIES}): {both}; play_update(seed)"
    players = (
        "from tests.slurmoperator.workers.node_world import play_on_nodes\n"
        "from tests.slurmoperator.workers.update_world import play_update\n"
        "from tests.slurmoperator.workers.world import play\n"
    )
    program = f"{players}{histories}"

    hunt = hunted(change, tmp_path, "-c", program, package="slurmoperator")

    assert hunt.returncode == 1, hunt.stderr or "it survived"
    assert "\nAssertionError: " in hunt.stderr, hunt.stderr
