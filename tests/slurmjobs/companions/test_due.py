"""Which companion is due: every cell of the table, and what holds whatever happens."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmjobs.companions import due, pod, volume
from slurmjobs.companions.due import Account, LogCompanion, LogStep
from slurmjobs.objects.results import JobEnding, JobResults
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.objects.status import ArrayTasks, JobOutputs, JobPhase
from slurmruntime.values import names
from tests.slurmjobs.companions.outputs import ALICE, job
from tests.slurmjobs.lifecycle.situations import NOW, UID

RESULTS = JobResults(phase="Collecting", ended=JobEnding(phase="Succeeded"))
COLLECTING = job("Running", end_time=NOW, results=RESULTS)


def follower(job_id: str = "7", **changes: object) -> LogCompanion:
    return LogCompanion(job_id=job_id, **changes)  # type: ignore[arg-type]  # by their names


def step(found: SlurmJobObject, companion: LogCompanion | None, *, later_s: float = 0) -> LogStep:
    return due.step(found, companion, NOW + timedelta(seconds=later_s))


@pytest.mark.parametrize(
    ("found", "companion", "wanted"),
    [
        pytest.param(job("Pending"), None, LogStep.REST, id="waiting costs no pod"),
        pytest.param(job("Running"), None, LogStep.MAKE, id="it starts"),
        pytest.param(job("Running"), follower(), LogStep.REST, id="it is followed"),
        pytest.param(job("Succeeded"), follower(), LogStep.TELL, id="it ends"),
        pytest.param(job("Failed"), follower(ended="3"), LogStep.REST, id="told once"),
        pytest.param(job("Succeeded"), None, LogStep.MAKE, id="it was short"),
        pytest.param(job("Running"), follower("6"), LogStep.REMOVE, id="another attempt"),
        pytest.param(job("Pending"), follower("6"), LogStep.REMOVE, id="another attempt waits"),
        pytest.param(job("Pending"), follower(), LogStep.REST, id="requeued"),
        pytest.param(job("Running"), follower(is_over=True), LogStep.REST, id="it was evicted"),
        pytest.param(job("Running", asks=False), None, LogStep.REST, id="nobody asks"),
        pytest.param(COLLECTING, follower(), LogStep.TELL, id="its results are copied"),
        pytest.param(COLLECTING, None, LogStep.MAKE, id="it was short and has results"),
    ],
)
def test_a_companion_is_there_when_there_is_something_to_follow(
    found: SlurmJobObject, companion: LogCompanion | None, wanted: LogStep
) -> None:
    assert wanted is step(found, companion)


def test_a_job_that_ended_long_ago_gets_none_but_its_own_is_told() -> None:
    late_s = due.LATE.total_seconds() + 1

    assert LogStep.REST is step(job("Succeeded"), None, later_s=late_s)
    assert LogStep.TELL is step(job("Succeeded"), follower(), later_s=late_s)


@given(
    st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
    st.none()
    | st.builds(
        follower,
        st.sampled_from(["6", "7"]),
        ended=st.sampled_from(["", "3"]),
        is_over=st.booleans(),
    ),
    st.booleans(),
    st.integers(0, 10_000),
)
def test_what_is_done_leads_to_rest(
    phase: JobPhase, companion: LogCompanion | None, asks: bool, later_s: int
) -> None:
    """No step repeats itself, so a companion is neither made again and again nor told twice."""
    found = job(phase, asks=asks)
    done: list[LogStep] = []
    while (log_step := step(found, companion, later_s=later_s)) is not LogStep.REST:
        assert log_step not in done
        assert asks
        done.append(log_step)
        match log_step:
            case LogStep.MAKE:
                companion = follower()
            case LogStep.TELL:
                companion = follower(ended=str(due.exit_code(found)))
            case LogStep.REMOVE:
                companion = None
    if phase in ("Succeeded", "Failed") and companion is not None and asks:
        assert companion.ended or companion.is_over or companion.job_id != "7"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ({"phase": "Succeeded", "exit_code": 0}, 0),
        ({"phase": "Failed", "exit_code": 3}, 3),
        ({"phase": "Failed", "exit_code": 0, "signal": 9}, 137),
        ({"phase": "Failed", "exit_code": 0}, 1),
        ({"phase": "Failed"}, 1),
        ({"phase": "Running", "exit_code": 0, "results": RESULTS}, 0),
        ({"phase": "Failed", "exit_code": 0, "results": RESULTS}, 0),
    ],
)
def test_it_ends_as_the_job_did(status: dict[str, object], code: int) -> None:
    assert code == due.exit_code(job(**status))  # type: ignore[arg-type]  # by their names


def test_only_what_lies_on_the_volume_is_followed() -> None:
    apart = JobOutputs(stdout="/scratch/alice/out", stderr="/home/alice/err")

    assert {"stdout": "alice/7.out"} == due.files(job())
    assert {"stdout": "alice/out"} == due.files(job(outputs=apart))
    assert {} == due.files(job(array=ArrayTasks(total=3)))
    assert {} == due.files(job(outputs=JobOutputs(stdout="/dev/null", stderr="/dev/null")))


@given(st.text("/.ab", max_size=12), st.sampled_from(["/a", "/a/b/", "/"]))
def test_a_path_on_the_volume_leads_nowhere_else(path: str, folder: str) -> None:
    found = volume.within(path, folder)
    if found is not None:
        assert not found.startswith("/")
        assert ".." not in found.split("/")
        assert path.startswith("/")


def test_a_companion_may_do_little() -> None:
    made = pod.manifest(job(), ALICE, "images.example.test/bridge:1")
    spec, meta = made["spec"], made["metadata"]
    (container,) = spec["containers"]

    assert ("train-job", UID) == (meta["name"], meta["ownerReferences"][0]["uid"])
    assert {"slurm-bridge.dev/follows": "7"} == meta["annotations"]
    assert (ALICE.uid, ALICE.gid, True) == tuple(
        spec["securityContext"][key] for key in ("runAsUser", "runAsGroup", "runAsNonRoot")
    )
    assert not spec["automountServiceAccountToken"]
    assert {"drop": ["ALL"]} == container["securityContext"]["capabilities"]
    assert "/volume/alice/7.out" in container["command"]
    assert {"persistentVolumeClaim", "downwardAPI"} == {
        key for each in spec["volumes"] for key in each if key != "name"
    }
    assert names.GATE not in str(made)


def test_the_kubelet_expands_nothing_in_a_files_name() -> None:
    tricky = JobOutputs(stdout="/scratch/$(HOME)", stderr="/scratch/$(HOME)")

    (container,) = pod.manifest(job(outputs=tricky), ALICE, "image")["spec"]["containers"]

    assert "/volume/$$(HOME)" in container["command"]


@pytest.mark.parametrize("account", [Account(uid=0, gid=5), Account(uid=-1, gid=5)])
def test_root_has_no_companion(account: Account) -> None:
    with pytest.raises(ValueError, match="can have no companion"):
        pod.manifest(job(), account, "image")
