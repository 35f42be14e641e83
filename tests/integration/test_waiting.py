"""What a pod is told while Slurm lets it wait, and that it starts when there is room."""

from collections.abc import Iterator

import pytest

from sandbox.client import Sandbox
from tests.integration.worlds import Worlds, condition, is_gated, job_id

_HELD = {"slurmjob.slinky.slurm.net/hold": "true"}
_WHOLE_NODE = "8"


@pytest.fixture
def strangers(worlds: Worlds, full_sandbox: Sandbox) -> Iterator[dict[str, int]]:
    """Every node is somebody else's; which job has which."""
    with worlds.strangers_on(*full_sandbox.instance.options.node_names) as jobs:
        yield jobs


def test_a_pod_that_waits_for_room_is_told_why_and_starts_when_there_is(
    worlds: Worlds, strangers: dict[str, int]
) -> None:
    uid = worlds.submit("waits", cpus=_WHOLE_NODE)

    told = worlds.await_pod("waits", lambda pod: condition(pod).get("reason") == "Resources")
    job = worlds.live(uid)[0]
    says = condition(told)
    assert "False" == says["status"]
    assert says["message"].startswith(
        f"Slurm job {job.id} waits: the resources it needs are not free (Resources)"
    )
    assert job.id == job_id(told)
    assert is_gated(told)
    worlds.await_event("waits", "Resources")
    first, *_ = [note for _, note in worlds.notes("waits") if "submitted as" in note]
    assert first.startswith(f"submitted as Slurm job {job.id}. Slurm job {job.id} waits: ")

    worlds.scancel(strangers["node-2"])

    started = worlds.await_phase("waits", "Running")
    assert (uid, "node-2") == (started["metadata"]["uid"], started["spec"]["nodeName"])
    worlds.await_pod("waits", lambda pod: condition(pod)["status"] == "True")
    started_on = f"submitted as Slurm job {job.id}, started on node-2"
    assert started_on == worlds.await_event("waits", "Allocated")
    assert [job.id] == [one.id for one in worlds.jobs(uid)]


def test_a_pod_that_waits_is_not_written_to_again(
    worlds: Worlds, strangers: dict[str, int]
) -> None:
    worlds.submit("waits", cpus=_WHOLE_NODE)
    told = worlds.await_pod("waits", lambda pod: condition(pod).get("reason") == "Resources")

    worlds.submit("later", cpus=_WHOLE_NODE)  # once that is told, the loops have turned
    worlds.await_pod("later", lambda pod: condition(pod).get("reason") == "Priority")

    still = worlds.await_pod("waits", is_gated)
    assert told["metadata"]["resourceVersion"] == still["metadata"]["resourceVersion"]
    assert {"Resources"} == worlds.events("waits").keys()


def test_a_pod_that_an_administrator_holds_is_told_so_and_starts_when_released(
    worlds: Worlds, strangers: dict[str, int]
) -> None:
    uid = worlds.submit("held", cpus=_WHOLE_NODE)
    job = worlds.await_live(uid)
    worlds.scontrol("hold", str(job.id))

    told = worlds.await_pod("held", lambda pod: condition(pod).get("reason") == "JobHeldAdmin")
    expected = f"Slurm job {job.id} waits: an administrator holds it (JobHeldAdmin)"
    assert condition(told)["message"].startswith(expected)

    worlds.scancel(strangers["node-1"])
    worlds.scontrol("release", str(job.id))

    worlds.await_phase("held", "Running")
    assert [job.id] == [one.id for one in worlds.jobs(uid)]


def test_a_pod_that_asked_to_be_held_is_told_so(worlds: Worlds) -> None:
    uid = worlds.submit("held", annotations=_HELD)

    told = worlds.await_pod(
        "held", lambda pod: condition(pod).get("reason", "").startswith("JobHeld")
    )

    assert is_gated(told)
    assert ["PENDING"] == [job.state for job in worlds.live(uid)]
