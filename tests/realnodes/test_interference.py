"""People interfere with jobs, and settings decide what becomes of real containers."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.integration import gang_pods
from tests.integration.breaker import await_read, await_readiness
from tests.integration.machines import repaired
from tests.integration.volumes import a_volume, mounted, only_on, volume_of
from tests.integration.worlds import Worlds, condition, is_gated
from tests.realnodes.conftest import OPTIONS
from tests.realnodes.containers import Containers
from tests.servers import fresh_namespace, running_sandbox

pytestmark = pytest.mark.real_all

UNTIL_TOLD = "until [ -e /scratch/go ]; do sleep 0.1; done; exit 3"
FOR_LONG = "sleep 600"
HELD = {f"{names.REQUEST_PREFIX}hold": "true"}
LITTLE = {"cpu": "500m"}
NEARLY_ALL = {"cpu": "1500m"}
"""Two such pods have no room on one of these nodes."""


@pytest.fixture(scope="module")
def strict(able: None) -> Iterator[Sandbox]:
    """One with other settings than the folder's."""
    settings = (
        "placement.bind_deadline_s=5",
        "controllers.suspended=keep",
        "controllers.eviction_always=2",
    )
    options = replace(OPTIONS, real_gpus=0, plain_nodes=0, settings=settings)
    with running_sandbox(options) as sandbox:
        yield sandbox


@pytest.fixture
def here(strict: Sandbox) -> Iterator[Worlds]:
    with fresh_namespace(strict, labels={names.ENABLED_LABEL: "true"}) as name:
        worlds = Worlds(strict, name)
        yield worlds
        worlds.clear()


@pytest.fixture
def pods(here: Worlds) -> Containers:
    return Containers(here.sandbox, here.namespace)


def test_a_job_that_an_administrator_holds_starts_no_container_until_it_is_released(
    here: Worlds, pods: Containers
) -> None:
    pods.create("held", "exit 3", notes=HELD)
    uid = here.await_pod("held", bool)["metadata"]["uid"]
    job = here.await_live(uid)
    here.scontrol("hold", str(job.id))
    told = here.await_pod("held", lambda pod: condition(pod).get("reason") == "JobHeldAdmin")
    assert is_gated(told)
    assert [] == told["status"].get("containerStatuses", [])

    here.scontrol("release", str(job.id))

    pods.ends("held")
    assert ("FAILED", "3:0") == pods.accounted("held")
    assert [job.id] == [one.id for one in here.jobs(uid)]


def test_a_container_runs_on_while_its_job_is_suspended(here: Worlds, pods: Containers) -> None:
    pods.create("suspended", UNTIL_TOLD)
    began = pods.runs("suspended")
    with repaired(here, began["spec"]["nodeName"]):
        here.scontrol("suspend", pods.job_of("suspended"))
        here.await_pod("suspended", lambda pod: condition(pod).get("reason") == "Suspended")

        here.scontrol("resume", pods.job_of("suspended"))

        here.await_pod("suspended", lambda pod: condition(pod).get("status") == "True")
        assert statuses(began) == statuses(pods.get("suspended"))
        pods.exec("suspended", "touch", "/scratch/go")
        pods.ends("suspended")
        assert ("FAILED", "3:0") == pods.accounted("suspended")


def test_a_container_on_a_node_that_a_gang_gave_up_ends_and_the_other_runs_on(
    here: Worlds, pods: Containers
) -> None:
    group = gang_pods.in_group("ring", 2)
    for name in ("a", "b"):
        pods.create(
            name,
            FOR_LONG,
            limits=NEARLY_ALL,
            notes=group["annotations"],
            labels=group["labels"],
        )
    began = {name: pods.runs(name) for name in ("a", "b")}
    nodes = {name: pod["spec"]["nodeName"] for name, pod in began.items()}
    (job,) = here.live(gang_pods.uid_of(here, "ring"))

    here.scontrol("update", f"jobid={job.id}", "numnodes=1")

    (smaller,) = here.live(gang_pods.uid_of(here, "ring"))
    (goes,) = (name for name, node in nodes.items() if node != smaller.nodes)
    (stays,) = nodes.keys() - {goes}
    evicted = here.await_eviction(goes)
    assert "SlurmNodeReleased" == condition(evicted, "DisruptionTarget")["reason"]
    here.await_gone(goes)
    assert statuses(began[stays]) == statuses(pods.get(stays))
    assert [(job.id, nodes[stays])] == [(one.id, one.nodes) for one in here.live(job.uid)]


def test_a_pod_whose_volume_is_elsewhere_gives_its_allocation_back(
    here: Worlds, pods: Containers
) -> None:
    with a_volume(here, "far"):
        pods.create("unbound", FOR_LONG, notes=HELD, volumes=[SCRATCH, mounted("far")])
        uid = here.await_pod("unbound", bool)["metadata"]["uid"]
        job = here.await_live(uid)
        here.sandbox.admin.patch(volume_of(here, "far"), {"spec": only_on("nowhere")})

        here.scontrol("release", str(job.id))

        evicted = here.await_eviction("unbound")
        assert "SlurmBindDeadline" == condition(evicted, "DisruptionTarget")["reason"]
        here.await_gone("unbound")
        assert "CANCELLED" == here.await_accounted(uid).state


SCRATCH = {"name": "scratch", "emptyDir": {"sizeLimit": "4Mi"}}


def test_containers_of_many_cancelled_jobs_end_and_the_other_runs_on(
    here: Worlds, pods: Containers
) -> None:
    """More than the circuit breaker lets go of those that have lost theirs."""
    created = [f"pod-{number}" for number in range(4)]
    for name in created:
        pods.create(name, FOR_LONG, limits=LITTLE)
    began = {name: pods.runs(name) for name in created}
    await_read(here, *created)
    doomed, survivor = created[:3], created[3]
    jobs = {name: pods.job_of(name) for name in created}

    here.sandbox.run("scancel", "--ctld", *(jobs[name] for name in doomed))

    for name in doomed:
        here.await_gone(name)
        assert "CANCELLED" == pods.accounted_job(jobs[name])[0]
    assert statuses(began[survivor]) == statuses(pods.get(survivor))
    await_readiness(here.sandbox, 200, "[+] evictions: ok")


def statuses(pod: dict[str, object]) -> object:
    """What its kubelet says of its containers: their ids, when they started, how often."""
    status = pod["status"]
    assert isinstance(status, dict)
    return status["containerStatuses"]
