"""The extender binds pods itself, whichever of its writes goes wrong and whatever happens meanwhile."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from typing_extensions import override

from bridge.domain.model.pods import Pod
from bridge.escrow import service as escrow
from slurmruntime.kube import errors
from slurmruntime.kube.meta import rfc3339
from slurmruntime.model import nodes
from slurmruntime.values import names
from slurmruntime.values.ids import KubeNode
from tests import virtual_time
from tests.extender.placing import placing
from tests.make.apiserver import ApiServer, Manifest
from tests.make.devices import PROFILES, claim, device_class, device_slice
from tests.make.leader import Leader, Outset
from tests.make.manifests import CLUSTER, GATED, RING, kube_node, pod, running
from tests.make.situations import Situation, check_that_every_write_may_fail, lived_through
from tests.make.slurm import Job
from tests.make.slurm_nodes import Node
from tests.make.trouble import Fault, Trouble
from tests.virtual_time import EPOCH, VirtualClock

OURS = names.binder(names.SCHEDULER_NAME)
BINDING = "POST /api/v1/namespaces/team-a/pods/one/binding"
STATUS = "PATCH /api/v1/namespaces/team-a/pods/one/status"
CLAIM = "PATCH /apis/resource.k8s.io/v1/namespaces/team-a/resourceclaims/one"
UNGATE = "PATCH /api/v1/namespaces/team-a/pods/one"


def gated(name: str = "one", **spec: Any) -> Manifest:
    return pod(name, {**GATED, "schedulerName": OURS, **spec})


def assigned(name: str = "one", notes: Mapping[str, str] | None = None, **spec: Any) -> Manifest:
    """As a leader leaves it that dies after removing the gate."""
    pinned = {names.NODE_ANNOTATION: "s1", names.SLUID_ANNOTATION: f"s{1:013}"}
    return pod(
        name,
        {"schedulerName": OURS, **spec},
        labels={names.JOB_ID_LABEL: "1"},
        notes={**pinned, **(notes or {})},
    )


def in_ring(name: str, rank: int) -> Manifest:
    notes = {
        names.WORKLOAD_ANNOTATION: RING,
        names.RANK_ANNOTATION: str(rank),
        names.WORLD_SIZE_ANNOTATION: "2",
    }
    return assigned(name, notes)


def somebody_elses(cpus: int) -> Manifest:
    found = pod("other", {"nodeName": "s1", "schedulerName": "another-scheduler"})
    found["spec"]["containers"][0]["resources"] = {"requests": {"cpu": str(cpus)}}
    return found


def outset(*pods: Manifest, jobs: list[Job] | None = None, **node: Any) -> Outset:
    labels = {names.EXTERNAL_NODE_LABEL: "true"}
    return Outset(
        objects=[kube_node("s1", labels=labels, **node), *pods],
        jobs=[running(memory_mib=1024)] if jobs is None else jobs,
        nodes=[Node(name="s1", features=(nodes.cluster_feature(CLUSTER),))],
        settings={"slurm": {"user": "someone", "group": "people"}},
        body=placing,
    )


def claiming(found: Manifest, its: Manifest) -> Outset:
    """A pod with a claim; its: the claim. The job has the first of the node's two devices."""
    found["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "one"}]
    job = running(gres="gpu:example:1(IDX:0)", memory_mib=1024)
    plain = outset(found, device_class(), device_slice(), its, jobs=[job])
    return replace(
        plain,
        nodes=[replace(plain.nodes[0], gres="gpu:example:2")],
        settings={**plain.settings, "controllers": {"device_profiles": PROFILES}},
    )


def node_of(api: ApiServer, name: str = "one") -> str:
    return str(api.pods[name]["spec"].get("nodeName", ""))


def scheduled(api: ApiServer) -> Manifest:
    conditions = api.pods["one"]["status"].get("conditions", [])
    return next(
        (condition for condition in conditions if condition["type"] == names.POD_SCHEDULED), {}
    )


SITUATIONS = [
    Situation("a pod gets its node", lambda: outset(gated())),
    Situation("a leader died before the Binding", lambda: outset(assigned())),
    Situation(
        "a gang gets its node",
        lambda: outset(
            in_ring("a", 0),
            in_ring("b", 1),
            jobs=[running(1, "a", "b", ring=True, tasks=2, memory_mib=1024)],
        ),
    ),
    Situation("a pod with a claim gets its node", lambda: claiming(gated(), claim("one"))),
    Situation(
        "a leader died before the Binding of a pod with a claim",
        lambda: claiming(assigned(), claim("one", given="gpu-0", to="one")),
    ),
    Situation("it does not fit", lambda: outset(wanting(assigned(), 2), somebody_elses(3))),
]


def wanting(found: Manifest, cpus: int) -> Manifest:
    found["spec"]["containers"][0]["resources"] = {"requests": {"cpu": str(cpus)}}
    return found


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name)
@pytest.mark.parametrize("there", SITUATIONS, ids=lambda there: there.name)
def test_after_a_write_that_went_wrong_all_is_as_if_it_had_not(
    there: Situation, fault: Fault
) -> None:
    check_that_every_write_may_fail(there, fault)


def test_a_pod_costs_two_writes() -> None:
    trouble = Trouble()

    found = lived_through(Situation("one", lambda: outset(gated())), trouble)

    assert [UNGATE, BINDING] == trouble.writes
    assert "s1" == node_of(found.api)
    assert not found.api.said  # no Event: docs/architecture.md says so


def test_a_claim_costs_two_writes_more() -> None:
    trouble = Trouble()

    found = lived_through(Situation("one", lambda: claiming(gated(), claim("one"))), trouble)

    assert [CLAIM, f"{CLAIM}/status", UNGATE, BINDING] == trouble.writes
    assert "s1" == node_of(found.api)


def test_a_pod_of_kube_schedulers_is_left_to_it() -> None:
    trouble = Trouble()

    lived_through(Situation("one", lambda: outset(pod("one", GATED))), trouble)

    assert [UNGATE] == trouble.writes


def test_members_of_a_gang_are_bound() -> None:
    found = lived_through(SITUATIONS[2], Trouble())

    assert ["s1", "s1"] == [node_of(found.api, name) for name in "ab"]


@pytest.mark.parametrize(
    ("there", "words"),
    [
        pytest.param(
            lambda: outset(wanting(assigned(), 2), somebody_elses(3)), "cpu", id="no room"
        ),
        pytest.param(lambda: outset(assigned(), unschedulable=True), "taint", id="cordoned"),
        pytest.param(
            lambda: outset(
                assigned(), taints=[{"key": "example.test/broken", "effect": "NoSchedule"}]
            ),
            "example.test/broken",
            id="tainted",
        ),
        pytest.param(lambda: outset(assigned(), is_ready=False), "not ready", id="node not ready"),
        pytest.param(
            lambda: outset(
                assigned(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
            ),
            "persistentVolumeClaim",
            id="volume claim",
        ),
        pytest.param(
            lambda: outset(assigned(resourceClaims=[{"name": "gpu", "resourceClaimName": "one"}])),
            "resource claims",
            id="resource claim without device profiles",
        ),
        *(
            pytest.param(
                lambda its=its: claiming(assigned(), its),
                "claim one has no devices on s1 for this pod alone",
                id=f"resource claim {how}",
            )
            for how, its in (
                ("without devices", claim("one")),
                ("of another pod", claim("one", given="gpu-0", to="other")),
                ("of another node", claim("one", given="gpu-0", to="one", node="s2")),
            )
        ),
    ],
)
def test_what_keeps_a_pod_from_being_bound_is_said_once(
    there: Callable[[], Outset], words: str
) -> None:
    trouble = Trouble()

    api = lived_through(Situation("one", there), trouble).api

    assert not node_of(api)
    assert ("False", names.UNSCHEDULABLE) == (scheduled(api)["status"], scheduled(api)["reason"])
    assert words in scheduled(api)["message"]
    assert [STATUS] == trouble.writes


def test_a_pod_whose_job_has_lost_its_node_meanwhile_is_told_and_not_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With escrow on; tests/escrow/test_shares.py has what the look finds."""
    trouble, lost = Trouble(), "Slurm job 1 no longer has s1"

    async def look(one: Pod, kube_node: KubeNode) -> str:
        return lost if (one.name, kube_node) == ("one", "s1") else ""

    monkeypatch.setattr(escrow, "last_check", lambda *_: look)
    api = lived_through(Situation("one", lambda: outset(assigned())), trouble).api

    assert not node_of(api)
    assert lost == scheduled(api)["message"]
    assert [STATUS] == trouble.writes


@pytest.mark.parametrize(
    "jobs",
    [
        pytest.param([], id="Slurm knows no job"),
        pytest.param([running(1, "another", memory_mib=1024)], id="the job is another pod's"),
    ],
)
def test_without_its_running_job_a_pod_is_not_bound(jobs: list[Job]) -> None:
    trouble = Trouble()

    found = lived_through(Situation("one", lambda: outset(assigned(), jobs=jobs)), trouble)

    assert not node_of(found.api)
    assert BINDING not in trouble.writes


class Refusing(Trouble):
    """The API server will not have the first Bindings."""

    def __init__(self, times: int, why: Callable[[str, str], errors.KubeError]) -> None:
        super().__init__()
        self.left = times
        self.why = why

    @override
    def write(self, what: str, do: Any, *, fail: Any) -> Any:
        if what == BINDING and self.left:
            self.left -= 1
            self.writes.append(what)
            raise self.why(*what.split())
        return super().write(what, do, fail=fail)


@pytest.mark.parametrize("why", [errors.Conflict, errors.Unavailable, errors.TooManyRequests])
def test_what_passes_is_tried_again(why: type[errors.KubeError]) -> None:
    trouble = Refusing(3, lambda method, path: why(method, path, message="not now"))

    found = lived_through(Situation("one", lambda: outset(assigned())), trouble)

    assert "s1" == node_of(found.api)
    assert 4 == trouble.writes.count(BINDING)


@pytest.mark.parametrize("why", [errors.Forbidden, errors.Rejected])
def test_a_refusal_is_said_as_kube_scheduler_would(why: type[errors.KubeError]) -> None:
    trouble = Refusing(1000, lambda method, path: why(method, path, message="somebody's policy"))

    api = lived_through(Situation("one", lambda: outset(assigned())), trouble).api

    assert names.SCHEDULER_ERROR == scheduled(api)["reason"]
    assert "somebody's policy" == scheduled(api)["message"]
    assert 1 == trouble.writes.count(STATUS)
    assert trouble.writes.count(BINDING) < 12  # every five seconds


Meanwhile = Callable[[ApiServer], None]


def changed(kind: str, name: str, **changes: Any) -> Meanwhile:
    """Somebody writes it, and our watch has not said so yet."""

    def change(api: ApiServer) -> None:
        api.of(kind)[name]["spec"] |= changes

    return change


def deleted(api: ApiServer) -> None:
    api.pods["one"]["metadata"] |= {
        "deletionTimestamp": rfc3339(EPOCH),
        "deletionGracePeriodSeconds": 30,
    }


class JustBefore(Trouble):
    """Something happens between the decision and the first Binding."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        super().__init__()
        self.meanwhile = meanwhile

    @override
    def write(self, what: str, do: Any, *, fail: Any) -> Any:
        if what == BINDING and BINDING not in self.writes:
            self.meanwhile()
        return super().write(what, do, fail=fail)


def lived_with(meanwhile: Meanwhile) -> tuple[ApiServer, Trouble]:
    """What the binder knows stays as it was: no watch tells."""

    async def main(clock: VirtualClock) -> tuple[ApiServer, Trouble]:
        trouble = JustBefore(lambda: meanwhile(leader.api))
        leader = Leader(outset(assigned()), trouble, clock)
        await leader.lead(for_s=20)
        return leader.api, trouble

    return virtual_time.run(main)


def test_a_pod_that_was_deleted_meanwhile_is_not_bound() -> None:
    api, trouble = lived_with(deleted)

    assert not node_of(api)
    assert 2 <= trouble.writes.count(BINDING) < 10, "it is tried again, and ever more slowly"


def test_a_pod_that_another_leader_has_bound_is_left_alone() -> None:
    api, trouble = lived_with(changed("Pod", "one", nodeName="s1"))

    assert "s1" == node_of(api)
    assert 1 == trouble.writes.count(BINDING)


def test_a_pod_that_somebody_has_bound_elsewhere_is_left_alone() -> None:
    api, trouble = lived_with(changed("Pod", "one", nodeName="s9"))

    assert "s9" == node_of(api)
    assert 1 == trouble.writes.count(BINDING)


def test_a_pod_that_is_gone_is_forgotten() -> None:
    api, trouble = lived_with(lambda api: api.remove("Pod", "one"))

    assert not api.pods
    assert [BINDING] == trouble.writes


def test_what_was_read_of_slurm_long_ago_is_not_believed() -> None:
    """Somebody may have ended the job meanwhile, and Slurm given the node to others."""
    job = running(1, "a", "b", ring=True, tasks=2, memory_mib=1024)

    async def main(clock: VirtualClock) -> dict[bool, str]:
        found: dict[bool, str] = {}
        for is_away in (False, True):
            leader = Leader(outset(in_ring("a", 0), jobs=[job]), Trouble(), clock)
            later = asyncio.get_running_loop().call_later
            later(10, setattr, leader.slurm, "is_away", is_away)
            later(60, leader.api.create, in_ring("b", 1))
            await leader.lead(for_s=90)
            assert "s1" == node_of(leader.api, "a")
            found[is_away] = node_of(leader.api, "b")
        return found

    assert {False: "s1", True: ""} == virtual_time.run(main)
