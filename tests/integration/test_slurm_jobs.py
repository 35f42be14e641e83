"""SlurmJobs on a real slurmd: real scripts run once, end as they end, and are cancelled when they should be."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.chart import BATCH_USER
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names
from tests import faults
from tests.fault_bench import FaultBench, fault_bench
from tests.integration import old_manifests
from tests.integration.batch_namespace import PATIENCE_S, Namespace, conditions
from tests.servers import fresh_namespace, running_sandbox, wait_until
from tests.slurmjobs import argo

PAGE = Path(__file__).parents[2] / "docs/slurmjob.md"
LIVE = {"PENDING", "RUNNING", "COMPLETING", "CONFIGURING"}
USER = BATCH_USER.name

pytestmark = pytest.mark.skipif(
    os.getuid() != 0,
    reason="NOT RUN: a real slurmd needs root (a /run of its own, jobs as other users); CI runs this as root",
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    options = Options(compute=2, nodes=1, accounting=True, settings=old_manifests.SETTINGS)
    with running_sandbox(options) as running:
        yield running


@pytest.fixture(scope="module")
def bench(sandbox: Sandbox) -> Iterator[FaultBench]:
    with fault_bench(sandbox) as bench:
        yield bench


@pytest.fixture
def namespace(bench: FaultBench) -> Iterator[Namespace]:
    with fresh_namespace(bench.sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        yield Namespace(bench.sandbox, name)
        bench.calm()


def test_a_script_runs_and_its_end_is_told_as_slurm_has_it(namespace: Namespace) -> None:
    good, bad = f"good-{namespace.name}", f"bad-{namespace.name}"
    namespace.create(good, 'test "$SLURM_JOB_ID" -gt 0 && test "$(id -un)" != root')
    namespace.create(bad, "exit 3")

    done = namespace.await_phase(good, "Succeeded", "Failed")
    failed = namespace.await_phase(bad, "Succeeded", "Failed")

    success, failure = argo.conditions(PAGE)
    for name, ended in ((good, (True, False)), (bad, (False, True))):
        found = namespace.get(name) or {}
        assert ended == (argo.holds(success, found), argo.holds(failure, found))
    assert ("Succeeded", 0, USER) == (done["phase"], done["exitCode"], done["user"])
    assert ("True", "Succeeded") == conditions(done)["Complete"]
    assert ("Failed", "NonZeroExit", 3) == (failed["phase"], failed["reason"], failed["exitCode"])
    assert ("True", "NonZeroExit") == conditions(failed)["Failed"]
    wait_until(
        lambda: [[str(failed["jobId"]), "FAILED", "3:0"]] == namespace.accounted(bad),
        PATIENCE_S,
        sandbox=namespace.sandbox,
    )


def test_a_script_starts_steps_on_several_nodes_as_its_user(namespace: Namespace) -> None:
    step = 'echo "$SLURMD_NODENAME $(id -u) ${LD_PRELOAD:-nothing preloaded}"'
    namespace.create(
        "steps", f"srun sh -c '{step}' > steps", options={"nodes": 2, "cpusPerTask": 2}
    )

    assert "Succeeded" == namespace.await_phase("steps", "Succeeded", "Failed")["phase"]

    printed = namespace.sandbox.instance.shared / USER / "steps"
    told = [f"{name} {BATCH_USER.uid} nothing preloaded" for name in ("compute-0", "compute-1")]
    assert told == sorted(printed.read_text().splitlines())
    assert printed.stat().st_uid == BATCH_USER.uid


def test_a_companion_reads_as_the_jobs_user_and_is_told_of_the_end(namespace: Namespace) -> None:
    """Past Slurm, though the namespace is bridged; tests/realnodes/test_job_logs.py has it print."""
    shared = namespace.sandbox.instance.shared
    namespace.create(
        "told",
        "exit 3",
        options={"output": f"{shared}/{USER}/%j.out"},
        output={"claimName": "scratch", "clusterPath": str(shared)},
    )
    path = f"/api/v1/namespaces/{namespace.name}/pods"

    def ended() -> list[str | None]:
        return [
            pod["metadata"]["annotations"].get(names.ENDED_ANNOTATION)
            for pod in namespace.sandbox.admin.get(path)["items"]
        ]

    wait_until(lambda: ended() == ["3"], PATIENCE_S, sandbox=namespace.sandbox)
    made = namespace.sandbox.admin.get(f"{path}/told-job")
    assert BATCH_USER.uid == made["spec"]["securityContext"]["runAsUser"]
    assert "default-scheduler" == made["spec"]["schedulerName"]
    assert "schedulingGates" not in made["spec"]
    assert "finalizers" not in made["metadata"]


def test_a_companion_that_is_refused_is_told_on_its_job(namespace: Namespace) -> None:
    """As in namespaces of which an administrator has set the least that a pod asks for."""
    least = {"type": "Container", "min": {"cpu": "100m"}, "default": {"cpu": "1"}}
    body = {"metadata": {"name": "least"}, "spec": {"limits": [least]}}
    namespace.sandbox.admin.create(f"/api/v1/namespaces/{namespace.name}/limitranges", body)
    folder = {"claimName": "scratch", "clusterPath": "/dev"}
    namespace.create("limited", "sleep 20", output=folder)

    wait_until(
        lambda: "CompanionRefused" in namespace.events("limited"),
        PATIENCE_S,
        sandbox=namespace.sandbox,
    )


def test_it_succeeds_when_its_results_are_copied_and_a_try_that_failed_is_repeated(
    namespace: Namespace,
) -> None:
    """The kubelet is played here; tests/realnodes/test_job_logs.py has a real one copy."""
    shared = namespace.sandbox.instance.shared
    namespace.create(
        "kept",
        "true",
        options={"chdir": f"{shared}/{USER}"},
        output={"claimName": "scratch", "clusterPath": str(shared)},
        results=[{"from": "model.bin", "to": {"claimName": "models"}}],
    )
    pods = f"/api/v1/namespaces/{namespace.name}/pods"

    def await_end_of(name: str, code: int, said: str) -> None:
        terminated = {"exitCode": code, "message": said, "finishedAt": "2026-01-01T00:00:00Z"}
        container = {"name": "collect", "state": {"terminated": terminated}}
        played = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [container]}

        def is_there() -> bool:
            found = namespace.sandbox.admin.get(pods)["items"]
            return name in {each["metadata"]["name"] for each in found}

        wait_until(is_there, PATIENCE_S, sandbox=namespace.sandbox)
        namespace.sandbox.admin.patch(f"{pods}/{name}/status", {"status": played})

    await_end_of("kept-collect-1", 75, "no space left")
    wait_until(
        lambda: "no space left" in namespace.status("kept")["message"],
        PATIENCE_S,
        sandbox=namespace.sandbox,
    )
    assert ("Running", "Collecting") == (
        namespace.status("kept")["phase"],
        namespace.status("kept")["reason"],
    )
    await_end_of("kept-collect-2", 0, "1 files")
    done = namespace.await_phase("kept", "Succeeded", "Failed")

    assert ("Succeeded", 0, "Collected") == (
        done["phase"],
        done["exitCode"],
        done["results"]["phase"],
    )
    assert "True" == conditions(done)["ResultsCollected"][0]
    made = namespace.sandbox.admin.get(f"{pods}/kept-collect-2")
    assert BATCH_USER.uid == made["spec"]["securityContext"]["runAsUser"]
    assert f"/volume/{USER}/model.bin" in made["spec"]["containers"][0]["command"][-1]


def test_it_waits_for_a_pod_that_slurm_places(namespace: Namespace) -> None:
    """One queue: the pod's placeholder is the job that Slurm waits for."""
    namespace.create("after", "true", dependsOn=[{"pod": "train"}])
    assert "waits for pod train" in namespace.await_phase("after", "Pending")["message"]
    pods = f"/api/v1/namespaces/{namespace.name}/pods"
    container = {
        "name": "c",
        "image": "none",
        "resources": {"limits": {"cpu": "1", "memory": "16Mi"}},
    }
    body = {"metadata": {"name": "train"}, "spec": {"containers": [container]}}
    namespace.sandbox.admin.create(pods, body)

    wait_until(lambda: "jobId" in namespace.status("after"), PATIENCE_S, sandbox=namespace.sandbox)
    waiting = namespace.status("after")
    assert ("Pending", "PENDING") == (waiting["phase"], waiting["state"])
    pod = namespace.sandbox.admin.get(f"{pods}/train")
    placeholder = pod["metadata"]["labels"][names.JOB_ID_LABEL]
    printed = namespace.sandbox.run("scontrol", "show", "job", str(waiting["jobId"]))
    assert f"afterok:{placeholder}(unfulfilled)" in printed
    ended = {"phase": "Succeeded", "containerStatuses": [_ended_well("c")]}
    namespace.sandbox.admin.patch(f"{pods}/train/status", {"status": ended})

    assert "Succeeded" == namespace.await_phase("after", "Succeeded", "Failed")["phase"]


def _ended_well(name: str) -> dict[str, Any]:
    at = "2026-01-01T00:00:00Z"
    terminated = {"exitCode": 0, "startedAt": at, "finishedAt": at, "reason": "Completed"}
    given = {"image": "none", "imageID": "none", "ready": False, "restartCount": 0}
    return {"name": name, **given, "state": {"terminated": terminated}}


def test_deleting_cancels_and_suspending_begins_again(namespace: Namespace) -> None:
    name = f"long-{namespace.name}"
    namespace.create(name, "sleep 300")
    running = namespace.await_phase(name, "Running")
    assert "compute-0" == running["nodes"]

    namespace.sandbox.admin.patch(f"{namespace.path}/{name}", {"spec": {"suspend": True}})
    wait_until(
        lambda: ["CANCELLED"] == [state.split()[0] for _, state, _ in namespace.accounted(name)],
        PATIENCE_S,
        sandbox=namespace.sandbox,
    )
    assert ("Pending", "Suspended") == (
        namespace.status(name)["phase"],
        namespace.status(name)["reason"],
    )
    namespace.sandbox.admin.patch(f"{namespace.path}/{name}", {"spec": {"suspend": False}})
    again = namespace.await_phase(name, "Running")
    assert (2, True) == (again["attempt"], again["jobId"] != running["jobId"])

    namespace.sandbox.admin.delete(f"{namespace.path}/{name}")
    wait_until(lambda: namespace.get(name) is None, PATIENCE_S, sandbox=namespace.sandbox)
    states = {state.split()[0] for _, state, _ in namespace.accounted(name)}
    assert {"CANCELLED"} == states


def test_a_lost_reply_and_a_killed_controller_leave_one_job(
    namespace: Namespace, bench: FaultBench
) -> None:
    lost, killed = f"lost-{namespace.name}", f"killed-{namespace.name}"
    link = bench.link("controllers", "slurmrestd")
    link.requests.clear()

    link.inject(faults.LOST_REPLY, "POST", "/job/submit")
    namespace.create(lost, "true")
    done = namespace.await_phase(lost, "Succeeded", "Failed")
    assert ("Succeeded", 1) == (done["phase"], done["attempt"])
    assert 1 == link.count("POST", "/job/submit")

    death = faults.LOST_REPLY.and_then(lambda: bench.kill("controllers"))
    link.inject(death, "POST", "/job/submit")
    namespace.create(killed, "true")
    assert "Succeeded" == namespace.await_phase(killed, "Succeeded", "Failed")["phase"]

    assert 2 == link.count("POST", "/job/submit")
    for name in (lost, killed):
        assert 1 == len(namespace.accounted(name)), name


def test_a_script_that_is_not_there_is_told(namespace: Namespace) -> None:
    body = {
        "apiVersion": "slurm-bridge.dev/v1alpha1",
        "kind": "SlurmJob",
        "metadata": {"name": "absent"},
        "spec": {"scriptFrom": {"configMapKeyRef": {"name": "scripts", "key": "train"}}},
    }
    namespace.sandbox.admin.create(namespace.path, body)

    def is_told() -> bool:
        status = namespace.status("absent")
        told = conditions(status) if "conditions" in status else {}
        return ("False", "ScriptMissing") == told.get("Submitted")

    wait_until(is_told, PATIENCE_S, sandbox=namespace.sandbox)


@pytest.mark.attack(
    "put 2000 times `-x n[1-99999]` into a ConfigMap, which no webhook sees, and name it in a SlurmJob",
    "scripts are read in proportion to their length wherever they come from; the SlurmJob's status names the line",
)
def test_a_dear_script_of_a_config_map_is_told_and_holds_up_nobody(namespace: Namespace) -> None:
    lists = " ".join(["-x n[1-99999]"] * 1000)
    scripts = {
        "lists": f"#!/bin/sh\n#SBATCH {lists}\n#SBATCH {lists}\ntrue\n",
        "names": f"#!/bin/sh\n#SBATCH -x {'a' * 16_000}[1-99999]\ntrue\n",
        "digits": f"#!/bin/sh\n#SBATCH --gpus-per-task={'1' * 5000}\ntrue\n",
    }
    admin = namespace.sandbox.admin
    path = f"/api/v1/namespaces/{namespace.name}/configmaps"
    admin.create(path, {"metadata": {"name": "dear"}, "data": scripts})
    for key in scripts:
        source = {"configMapKeyRef": {"name": "dear", "key": key}}
        body = {
            "apiVersion": "slurm-bridge.dev/v1alpha1",
            "kind": "SlurmJob",
            "metadata": {"name": key},
            "spec": {"scriptFrom": source},
        }
        admin.create(namespace.path, body)
    namespace.create("stranger", "true")

    assert "Succeeded" == namespace.await_phase("stranger", "Succeeded", "Failed")["phase"]
    wait_until(
        lambda: {"ScriptInvalid"} == {namespace.status(key).get("reason") for key in scripts},
        PATIENCE_S,
        sandbox=namespace.sandbox,
    )
    assert "line 2: the header has more than 500 options" in namespace.status("lists")["message"]


def test_what_goes_wrong_is_told_in_status_event_and_why(namespace: Namespace) -> None:
    """Each bad case: what is done to the job once it runs, the reason, and words of `why`."""
    run = namespace.sandbox.run
    namespace.create("nowhere", "true", options={"partition": "none-such"})
    namespace.create("greedy", "true", options={"gres": "gpu:99"})
    namespace.create("unopened", "true", options={"output": "/proc/none/out"})
    namespace.create("cancelled", "sleep 300")
    namespace.create("requeued", "sleep 300")
    namespace.create("held", "true", options={"hold": True})
    for name in ("cancelled", "requeued"):
        namespace.await_phase(name, "Running")
    run("scancel", str(namespace.status("cancelled")["jobId"]))
    run("scontrol", "requeuehold", str(namespace.status("requeued")["jobId"]))

    expected = {
        "nowhere": ("Pending", "SubmitRefused", "SubmitRefused", "has no job in Slurm"),
        "greedy": ("Failed", "NeverRunnable", "NeverRunnable", "no node can ever satisfy"),
        "unopened": ("Failed", "OutputFailed", "OutputFailed", "has failed"),
        "cancelled": ("Failed", "Cancelled", "Cancelled", "who cancelled it"),
        "requeued": ("Pending", "JobHeldUser", "Requeued", "scontrol release"),
        "held": ("Pending", "JobHeldUser", "JobHeldUser", "its user holds it"),
    }

    def found() -> dict[str, tuple[str | None, str | None]]:
        told = {name: namespace.status(name) for name in expected}
        return {name: (each.get("phase"), each.get("reason")) for name, each in told.items()}

    wanted = {name: (phase, reason) for name, (phase, reason, _, _) in expected.items()}
    wait_until(lambda: found() == wanted, PATIENCE_S, sandbox=namespace.sandbox)
    missing = {name: event for name, (_, _, event, _) in expected.items()}
    wait_until(
        lambda: all(event in namespace.events(name) for name, event in missing.items()),
        PATIENCE_S,
        sandbox=namespace.sandbox,
    )
    for name, (_, _, _, words) in expected.items():
        assert words in namespace.why(name)
    assert "partition" in namespace.why("nowhere")
    assert len(namespace.accounted("cancelled")) == 1
    assert {"exitCode", "signal", "startTime", "outputs"}.isdisjoint(namespace.status("greedy"))
    assert "signal" not in namespace.why("greedy")


def test_every_published_manifest_of_sylabs_runs_unchanged_and_succeeds(
    namespace: Namespace,
) -> None:
    old_manifests.run_published(namespace.sandbox, namespace.name, PATIENCE_S)


def test_a_definition_of_sylabs_that_is_missing_stops_nobody_elses_jobs(
    namespace: Namespace,
) -> None:
    name = f"alone-{namespace.name}"
    with old_manifests.without_a_definition(namespace.sandbox):
        namespace.create(name, "exit 0")
        assert "Succeeded" == namespace.await_phase(name, "Succeeded", "Failed")["phase"]
        assert len(namespace.accounted(name)) == 1


def test_an_array_of_a_hundred_says_which_task_failed(namespace: Namespace) -> None:
    name = f"many-{namespace.name}"
    namespace.create(name, 'test "$SLURM_ARRAY_TASK_ID" != 17', options={"array": "0-99"})

    done = namespace.await_phase(name, "Succeeded", "Failed")

    tasks = done["array"]
    assert ("Failed", "NonZeroExit", 1) == (done["phase"], done["reason"], done["exitCode"])
    assert (100, 99, 1, "17") == (
        tasks["total"],
        tasks["succeeded"],
        tasks["failed"],
        tasks["failedTasks"],
    )
    assert "failed tasks 17" in namespace.why(name)
    wait_until(lambda: len(namespace.accounted(name)) == 100, PATIENCE_S, sandbox=namespace.sandbox)
    bad = [line for line in namespace.accounted(name) if line[1:] != ["COMPLETED", "0:0"]]
    assert [[f"{done['jobId']}_17", "FAILED", "1:0"]] == bad
