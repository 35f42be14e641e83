"""Takes one handling after the other out of a copy of the tree and runs the test of the real system that is to miss it.

`python -m tests.removals [NAME …]`: some minutes for each. Ends with 1 if a test passes all the same. What the pure model
misses when it is taken out is tried by `tests/properties/test_mutants.py`, many times as fast.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
_LEFT_BEHIND = shutil.ignore_patterns(
    ".git", ".venv", ".*cache", "__pycache__", ".hypothesis", ".soak", "site"
)
_PACKAGES = (".", "client", "dev", "exporter")
"""Where the tree's packages are."""
_TIMEOUT_S = 900
_FAILED = 1
"""Pytest's exit code for tests that ran, and failed; an error of collection or usage has another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """One handling, and who is to miss it."""

    name: str
    file: str
    before: str
    after: str
    test: str


REMOVALS = [
    Removal(
        name="scancel of a running job",
        file="bridge/domain/lifecycle/table.py",
        before="            paused=placed.keep_suspended,\n            ended=placed.evict,\n        ),\n        Row.STOPPING",
        after="            paused=placed.keep_suspended,\n            ended=ending.let_stop,\n        ),\n        Row.STOPPING",
        test="tests/integration/test_endings.py::test_scancel_of_a_running_placeholder_evicts_its_pod_and_says_why",
    ),
    Removal(
        name="containers that still stop",
        file="bridge/domain/lifecycle/table.py",
        before="running=ending.hold,",
        after="running=ending.cancel,",
        test="tests/integration/test_endings.py::test_a_deleted_pods_placeholder_ends_only_after_its_containers",
    ),
    Removal(
        name="a pod that never starts",
        file="bridge/domain/lifecycle/rules/placed.py",
        before="    if remaining is not None and remaining <= timedelta(0):",
        after="    if False:",
        test="tests/integration/test_endings_by_policy.py::test_a_pod_that_never_starts_gives_its_allocation_back",
    ),
    Removal(
        name="the circuit breaker",
        file="bridge/domain/lifecycle/breaker.py",
        before="return len(self.bereft) > max(limits.always, limits.share * self.running)",
        after="return False",
        test="tests/integration/test_endings_by_policy.py::test_many_are_not_evicted_at_once_before_an_operator_says_so",
    ),
    Removal(
        name="orphans",
        file="controllers/pods/orphans.py",
        before="        for orphan in self._last.orphans:",
        after="        for orphan in ():",
        test="tests/integration/test_strays.py::test_what_a_pod_leaves_when_its_finalizer_is_torn_off_is_cancelled",
    ),
    Removal(
        name="the cluster id of a job",
        file="bridge/slurm/discovery.py",
        before="case SlurmJob() if job.identity.cluster == self._cluster:",
        after="case SlurmJob():",
        test="tests/integration/test_strays.py::test_jobs_that_only_look_like_ours_survive_everything",
    ),
    Removal(
        name="an etcd that went backwards",
        file="slurmruntime/kube/watch.py",
        before="if self._was_interrupted and await self._went_backwards():",
        after="if False:",
        test="tests/kube/test_watch.py::test_after_a_restore_of_etcd_what_is_undone_is_forgotten",
    ),
    Removal(
        name="an API server that is away at the start",
        file="bridge/reconcile/program.py",
        before="    for attempt in range(1, _ATTEMPTS):",
        after="    for attempt in range(0):",
        test="tests/integration/test_wrong_answers.py::test_a_service_that_starts_while_the_api_server_is_away_waits_for_it",
    ),
    Removal(
        name="a leader whose work does not end",
        file="slurmruntime/leading/lease.py",
        before="""\
                    doom = asyncio.get_running_loop().call_later(_UNWINDING_S, self._give_up)
                    await liveness.ended(reigning)
                    await liveness.ended(renewing)
""",
        after="""\
                    reigning.cancel()
                    renewing.cancel()
""",
        test="tests/leading/test_lease.py::TestTrouble::test_a_body_that_does_not_end_ends_the_process",
    ),
    Removal(
        name="graces of centuries",
        file="slurmruntime/values/numbers.py",
        before="    return within(number, 0, LONGEST_S)",
        after="    return number",
        test="tests/integration/test_odd_objects.py::test_a_delete_with_a_grace_of_centuries_stops_nobody",
    ),
    Removal(
        name="graces of years after the job's end",
        file="bridge/domain/lifecycle/rules/ending.py",
        before="    return graces.shorten(case) or _wait_for_containers(case)",
        after="    return _wait_for_containers(case)",
        test="tests/integration/test_odd_objects.py::test_a_delete_with_a_grace_of_years_keeps_neither_the_job_nor_the_node",
    ),
    Removal(
        name="pins that are refused",
        file="bridge/domain/lifecycle/rules/waiting.py",
        before="    if why := _why_unpinnable(case):\n        return _misfit(case, why)\n",
        after="",
        test="tests/integration/test_endings_by_policy.py::test_a_pod_that_cannot_be_pinned_gives_its_allocation_back_and_is_told",
    ),
    Removal(
        name="node names from elsewhere",
        file="deploy/chart/templates/policies/direct.yaml",
        before="- expression: oldObject != null || !has(object.spec.nodeName)",
        after='- expression: "true"',
        test="tests/chart/test_policies_direct.py::test_from_elsewhere_nobody_gets_there_past_slurm",
    ),
    Removal(
        name="fillers on external nodes",
        file="controllers/nodes/fillers.py",
        before="            if nodes.is_wanted(kube_node):",
        after="            if nodes.is_hybrid(kube_node):",
        test="tests/integration/test_nodes.py::test_what_gets_to_a_node_past_slurm_is_held_back_and_drains_nothing",
    ),
    Removal(
        name="caps at the door",
        file="bridge/domain/admission/review.py",
        before="        *caps.faults(pod.sizes, defaults.caps),\n",
        after="",
        test="tests/integration/test_odd_objects.py::test_a_pod_with_too_much_of_everything_is_refused_with_all_faults",
    ),
    Removal(
        name="gangs in the circuit breaker",
        file="controllers/pods/breaker.py",
        before="View(jobs=self._placeholders.of(pod.workload))",
        after="View(jobs=self._placeholders.of(pod.uid))",
        test="tests/integration/test_gang_breaker.py",
    ),
    Removal(
        name="bytes that JSON does not allow",
        file="client/slurmclient/wire/reading.py",
        before='.decode(errors="replace").encode()',
        after=".decode().encode()",
        test="tests/integration/test_odd_bytes.py::test_pods_are_placed_and_completed_beside_a_strangers_job_with_an_odd_name",
    ),
    Removal(
        name="bombs of annotations",
        file="bridge/domain/request/overrides.py",
        before="    if len(asked) > MOST_FIELDS:",
        after="    if False:",
        test="tests/integration/test_odd_objects.py::test_a_job_with_5000_unknown_fields_is_told_and_others_are_served",
    ),
    Removal(
        name="numbers of many digits",
        file="bridge/domain/model/pods.py",
        before='names.RANK_ANNOTATION, "")\n        return numbers.integer(text)',
        after='names.RANK_ANNOTATION, "")\n        return int(text) if text else None',
        test="tests/integration/test_odd_objects.py::test_a_rank_of_5000_digits_stops_nobody",
    ),
    Removal(
        name="the running job of a pod that the extender binds",
        file="bridge/domain/admission/binder.py",
        before="    if job.phase is not JobPhase.RUNNING or known.slurm_node not in job.nodes:",
        after="    if False:",
        test="tests/domain/admission/test_binder.py",
    ),
    Removal(
        name="old readings of Slurm, for a pod that the extender binds",
        file="extender/binder.py",
        before="        is_known = self._placeholders.health() is None",
        after="        is_known = True",
        test="tests/extender/test_binder.py::test_what_was_read_of_slurm_long_ago_is_not_believed",
    ),
    Removal(
        name="the devices of a pod that the extender binds",
        file="bridge/domain/admission/binder.py",
        before="        if not claim.is_allocated_to(known.pod.uid, node):",
        after="        if False:",
        test="tests/extender/test_binder.py::test_what_keeps_a_pod_from_being_bound_is_said_once",
    ),
    Removal(
        name="volumes that only kube-scheduler can see to",
        file="deploy/chart/templates/_cel.tpl",
        before="object.spec.?volumes.orValue([]).all(v, {{ range",
        after="object.spec.?volumes.orValue([]).all(v, true || {{ range",
        test="tests/chart/test_binder.py::test_only_pods_with_plain_volumes_have_the_name",
    ),
]


def main(names: Sequence[str]) -> int:
    """Try those, or all; one line for each."""
    chosen = [removal for removal in REMOVALS if not names or removal.name in names]
    if len(chosen) < len(names):
        sys.stderr.write(f"these can be taken out: {', '.join(r.name for r in REMOVALS)}\n")
        return 2
    survivors = 0
    for removal in chosen:
        said = missed(removal)
        survivors += not said
        sys.stdout.write(f"| {removal.name} | {said or 'NOBODY MISSES IT'} |\n")
        sys.stdout.flush()
    return 1 if survivors else 0


def missed(removal: Removal) -> str:
    """What the test says without the handling; "" if it passes.

    Raises:
        ValueError: the line is not there any more, or twice.
        RuntimeError: the test did not run.
    """
    with tempfile.TemporaryDirectory(prefix="slurm-bridge-removal-") as folder:
        root = Path(folder, "tree")
        shutil.copytree(ROOT, root, ignore=_LEFT_BEHIND)
        Path(folder).chmod(0o755)
        file = root / removal.file
        source = file.read_text()
        if source.count(removal.before) != 1:
            raise ValueError(f"{removal.file} has these lines not once: {removal.before!r}")
        file.write_text(source.replace(removal.before, removal.after))
        # The sandbox is a program of its own: without a path it would start the services of this tree.
        path = os.pathsep.join(str(root / package) for package in _PACKAGES)
        test = subprocess.run(
            (sys.executable, "-m", "pytest", "-q", "-x", "--tb=short", removal.test),
            cwd=root,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    if test.returncode not in (0, _FAILED):
        raise RuntimeError(f"{removal.test} did not run:\n{test.stdout}{test.stderr}")
    found = re.search(r"^FAILED (?:\S+::)?(\S+)", test.stdout, re.MULTILINE)
    words = re.search(r"^E +(.{1,120})", test.stdout, re.MULTILINE)
    return f"`{found[1]}`: {words[1] if words else ''}" if found else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
