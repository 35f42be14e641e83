"""Which workload a pod belongs to, by kind, and how many members there have to be."""

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.domain.model import grant
from bridge.domain.model.grant import Grant
from bridge.domain.model.identities import Identity
from bridge.domain.model.pods import Pod
from bridge.domain.workloads import claims, membership, workload
from bridge.domain.workloads.kinds import coscheduling, jobset, kueue, leader_worker_set
from bridge.domain.workloads.workload import Groups, Workload
from slurmruntime.model.objects import KubeObject, Owner
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId, WorkloadKey, alone_key
from tests.make import members as build


def evaluated(pods: list[Pod], *owners: KubeObject, declared: KubeObject | None = None) -> Workload:
    members = [(claims.of(pod, owners), pod) for pod in pods]
    assert 1 == len({member.key for member, _ in members})
    return workload.evaluate(members, declared)


def sizes(found: Workload) -> tuple[int, int, bool]:
    return found.size, found.needed, found.is_complete


def words(found: Workload) -> str:
    return "; ".join(fault.text for fault in found.faults)


def test_a_pod_is_a_workload_of_its_own() -> None:
    member = claims.of(build.pod("a"), [])
    assert (membership.POD, "uid-team-a-a", False) == (member.kind, member.key, member.is_gang)


@pytest.mark.parametrize(
    "owners",
    [
        pytest.param([build.owner("ReplicaSet", "rs"), build.owner("Deployment", "web")], id="web"),
        pytest.param([build.owner("StatefulSet", "db")], id="StatefulSet"),
        pytest.param([build.job(gang=None)], id="Job"),
        pytest.param([build.job(gang="false")], id="Job that says so"),
        pytest.param([build.owner("Anything", "odd", annotations={"a": "b"})], id="unknown kind"),
        pytest.param([], id="unreadable owner"),
    ],
)
def test_pods_of_these_owners_are_placed_one_by_one(owners: list[KubeObject]) -> None:
    assert not claims.of(build.indexed(0), owners).is_gang


def test_a_job_is_a_gang_where_it_or_its_template_says_so() -> None:
    pods = [build.indexed(index) for index in (3, 0, 2, 1)]
    found = evaluated(pods, build.job(completions=4, completionMode="Indexed"))
    assert (4, 4, True) == sizes(found)
    assert ("Job", "train", "uid-train") == (found.kind, found.name, found.key)
    assert ["train-0-x7z", "train-1-x7z", "train-2-x7z", "train-3-x7z"] == [
        pod.name for pod in found.members
    ]
    own = build.pod("a", annotations={names.GANG_ANNOTATION: "true"})
    assert claims.of(own, [build.job(gang=None)]).is_gang
    assert not claims.of(own, []).is_gang, "a bare pod has nobody to be a gang with"


def test_a_template_overrides_its_owner() -> None:
    own = build.pod("a", annotations={names.GANG_ANNOTATION: "false"})
    assert not claims.of(own, [build.job(gang="true")]).is_gang


@pytest.mark.parametrize(
    ("spec", "done", "size"),
    [
        ({"parallelism": 4, "completions": 10}, 0, 4),
        ({"parallelism": 4, "completions": 10}, 7, 3),
        ({"parallelism": 4, "completions": 2, "completionMode": "Indexed"}, 0, 2),
        ({"parallelism": 4}, 0, 4),
    ],
)
def test_a_jobs_size_is_its_parallelism_within_what_is_left(
    spec: dict[str, Any], done: int, size: int
) -> None:
    job = build.owner("Job", "train", spec=spec, status={"succeeded": done})
    job_gang = [build.pod("a", annotations={names.GANG_ANNOTATION: "true"})]
    found = evaluated(job_gang, job)
    assert size == found.size
    assert (size == 1) == found.is_complete


def test_two_pods_of_one_index_wait_for_the_older_to_go() -> None:
    twins = [build.indexed(0), build.pod("train-0-abc", annotations={build.INDEX: "0"})]
    found = evaluated(twins, build.job(parallelism=2))
    assert not found.is_complete
    assert "more than one pod has rank 0" in words(found)


def test_a_jobset_is_one_gang_and_another_after_a_restart() -> None:
    root = build.jobset(
        build.replicated("driver"), build.replicated("workers", replicas=2, parallelism=2)
    )
    pods = [build.of_jobset("driver", 0, 0)]
    pods += [build.of_jobset("workers", 1 + job, index) for job in (1, 0) for index in (1, 0)]
    found = evaluated(pods, build.job(gang=None), root)
    assert (5, 5, True) == sizes(found)
    order = ["set-driver-0-0", "set-workers-1-0", "set-workers-1-1", "set-workers-2-0"]
    assert order == [pod.name for pod in found.members][:4]
    again = build.of_jobset("driver", 0, 0, attempt=1)
    assert found.key != claims.of(again, [build.job(gang=None), root]).key


@pytest.mark.parametrize(
    "root",
    [
        build.jobset(
            build.replicated("driver"),
            build.replicated("workers", parallelism=3),
            startupPolicy={"startupPolicyOrder": "InOrder"},
        ),
        build.jobset(
            build.replicated("driver"),
            build.replicated("workers", parallelism=3, dependsOn=[{"name": "driver"}]),
        ),
    ],
)
def test_a_jobset_that_starts_in_turn_is_a_gang_for_each_part(root: KubeObject) -> None:
    driver = evaluated([build.of_jobset("driver", 0, 0)], build.job(gang=None), root)
    assert (1, 1, True) == sizes(driver)
    workers = [build.of_jobset("workers", 1, index) for index in range(3)]
    assert (3, 3, True) == sizes(evaluated(workers, build.job(gang=None), root))


def test_exclusive_topology_needs_the_leader_only_and_keeps_room_for_the_job() -> None:
    root = build.jobset(
        build.replicated("driver"), build.replicated("work", replicas=2, parallelism=4)
    )
    exclusive: dict[str, Any] = {jobset.EXCLUSIVE: "rack"}
    leaders = [build.of_jobset("work", job, 0, **exclusive) for job in (0, 1)]
    gangs = [evaluated([leader], build.job(gang=None), root) for leader in leaders]
    assert [(4, 1, True)] * 2 == [sizes(gang) for gang in gangs]
    assert ["set-work-0", "set-work-1"] == [gang.name for gang in gangs]
    assert 2 == len({gang.key for gang in gangs})
    assert ["rack", "rack"] == [gang.shared_label for gang in gangs]


def test_a_follower_that_is_tied_to_its_leaders_domain_is_of_the_same_size() -> None:
    notes = {leader_worker_set.EXCLUSIVE: "rack"}
    leader, follower = build.of_lws(0, 0, **notes), build.of_lws(0, 1, **notes)
    tied = replace(follower, node_selector={"rack": "a"})
    assert workload.shape(leader) == workload.shape(tied)
    elsewhere = replace(follower, node_selector={"rack": "a", "zone": "b"})
    assert workload.shape(leader) != workload.shape(elsewhere)


@pytest.mark.parametrize(
    ("policy", "notes", "complete"),
    [
        ("LeaderCreated", {}, False),
        ("LeaderReady", {}, True),
        ("LeaderCreated", {leader_worker_set.EXCLUSIVE: "rack"}, True),
    ],
)
def test_a_leader_alone_is_enough_where_workers_wait_for_it(
    policy: str, notes: dict[str, str], complete: bool
) -> None:
    found = evaluated([build.of_lws(0, 0, **notes)], build.lws(policy))
    assert (3, complete) == (found.size, found.is_complete)


def test_the_groups_of_a_leader_worker_set_are_gangs_of_their_own() -> None:
    pods = [build.of_lws(group, worker) for group in (0, 1) for worker in (2, 1, 0)]
    keys = {claims.of(pod, [build.lws()]).key for pod in pods}
    assert 2 == len(keys)
    found = evaluated(pods[:3], build.lws())
    assert ["serve-0", "serve-0-1", "serve-0-2"] == [pod.name for pod in found.members]
    assert [0, 1, 2] == [found.wanted[pod.uid] for pod in found.members]


def test_an_unreadable_leader_worker_set_does_not_lock_up() -> None:
    assert evaluated([build.of_lws(0, 0)]).is_complete


@pytest.mark.parametrize(
    ("claim", "spec"),
    [
        ({"scheduling_group": "ring"}, {"schedulingPolicy": {"gang": {"minCount": 2}}}),
        ({"labels": {coscheduling.LABEL: "ring"}}, {"minMember": 2}),
    ],
)
def test_a_pod_group_has_its_minimum_or_whoever_is_there(
    claim: dict[str, Any], spec: dict[str, Any]
) -> None:
    declared = build.owner("PodGroup", "ring", spec=spec)
    pods = [build.pod(name, **claim) for name in ("a", "b", "c")]
    assert (2, 2, False) == sizes(evaluated(pods[:1], declared=declared))
    assert (2, 2, True) == sizes(evaluated(pods[:2], declared=declared))
    assert (3, 2, True) == sizes(evaluated(pods, declared=declared))
    missing = evaluated(pods, declared=None)
    assert not missing.is_complete
    assert "PodGroup team-a/ring: not found" in words(missing)


def test_a_basic_pod_group_is_no_gang_and_one_that_cannot_be_read_holds_its_pods() -> None:
    pod = build.pod("a", scheduling_group="ring")
    member = claims.of(pod, [])
    basic = build.owner("PodGroup", "ring", spec={"schedulingPolicy": {"basic": {}}})
    assert not claims.settled(member, pod, basic).is_gang
    assert claims.settled(member, pod, None).is_gang
    unread = claims.settled(member, pod, None, unread="v1alpha2 is not served")
    assert (False, True) == (unread.is_gang, bool(unread.held_as))
    (fault,) = unread.faults
    assert fault.text.startswith(
        "PodGroup team-a/ring: cannot be read: v1alpha2 is not served; the pod waits"
    )


@pytest.mark.parametrize(
    ("api_version", "kind", "is_held"),
    [
        ("jobset.x-k8s.io/v1alpha2", "JobSet", True),
        ("kubeflow.org/v2beta1", "MPIJob", True),
        ("trainer.kubeflow.org/v1alpha1", "TrainJob", True),
        ("ray.io/v1", "RayCluster", True),
        ("batch/v1", "Job", True),
        ("batch/v1", "CronJob", True),
        ("apps/v1", "ReplicaSet", False),
        ("argoproj.io/v1alpha1", "Workflow", False),
        ("v1", "Pod", False),
        ("example.com/v1", "Job", False),
    ],
)
def test_an_owner_that_may_make_a_gang_must_be_readable(
    api_version: str, kind: str, *, is_held: bool
) -> None:
    missing = Owner(api_version=api_version, kind=kind, name="train", uid="u")
    pod = build.pod("a")
    held = claims.beneath(claims.of(pod, []), pod, [], missing, why="forbidden")
    assert (is_held, not is_held) == (bool(held.held_as), not held.faults)

    out = build.pod("a", annotations={names.GANG_ANNOTATION: "false"})
    assert not claims.beneath(claims.of(out, []), out, [], missing, why="forbidden").faults
    marked = build.of_lws(0, 0)
    assert claims.beneath(claims.of(marked, []), marked, [], missing, why="gone").is_gang


def test_a_kueue_group_has_its_total_count() -> None:
    def member(name: str) -> Pod:
        return build.pod(
            name,
            labels={kueue.LABEL: "batch"},
            annotations={kueue.SIZE: "2"},
        )

    assert (2, 2, False) == sizes(evaluated([member("a")]))
    assert (2, 2, True) == sizes(evaluated([member("a"), member("b")]))


def test_any_root_owner_may_say_how_many_pods_it_has() -> None:
    notes = {names.POD_GROUP_SIZE_ANNOTATION: "2"}
    root = build.owner("RayCluster", "ray", annotations=notes)
    pods = [build.pod("ray-head"), build.pod("ray-worker-0")]
    found = evaluated(pods, build.owner("ReplicaSet", "rs"), root)
    assert (2, 2, True) == sizes(found)
    assert ("RayCluster", "ray") == (found.kind, found.name)


def test_the_same_name_in_another_namespace_is_another_group() -> None:
    one = claims.of(build.labelled("a", "ring"), [])
    other = claims.of(build.labelled("a", "ring", namespace="team-b"), [])
    assert one.key != other.key


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ([None], "missing on p0"),
        (["0"], "expected a whole number from 1, found 0"),
        (["-2"], "expected a whole number from 1, found '-2'"),
        (["many"], "found 'many'"),
        (["2", "3"], "expected one size for all pods of the group, found 2 and 3"),
        (["99999"], "expected at most 2000 pods in one gang, found 99999"),
        (["9" * 5000], f"expected a whole number of at most 9 digits, found {'9' * 40}"),
        (["9" * 5000, "2"], f"found 2 and {'9' * 40}"),
    ],
)
def test_a_bad_size_is_told(texts: list[str | None], says: str) -> None:
    pods = [build.labelled(f"p{i}", "ring", text) for i, text in enumerate(texts)]
    found = evaluated(pods)
    assert not found.is_complete
    assert says in words(found)


@pytest.mark.parametrize(
    "root",
    [
        build.jobset({"name": "workers", "replicas": "two"}),
        build.owner("JobSet", "set", spec={"replicatedJobs": "none"}),
        build.owner("JobSet", "set", spec={}),
        build.jobset({"name": "workers", "template": {"spec": {"parallelism": {}}}}),
    ],
)
def test_a_malformed_jobset_is_told(root: KubeObject) -> None:
    found = evaluated([build.of_jobset("workers", 0, 0)], build.job(gang=None), root)
    assert not found.is_complete
    assert "JobSet set: spec.replicatedJobs" in words(found)


def test_two_groups_cannot_claim_one_pod() -> None:
    labels = {names.POD_GROUP_LABEL: "ring", coscheduling.LABEL: "circle"}
    member = claims.of(build.pod("a", labels=labels), [])
    (fault,) = member.faults
    assert "two groups claim the pod, PodGroup circle and pod-group ring" in fault.message


def test_names_are_sorted_as_people_count() -> None:
    pods = [build.labelled(f"w-{index}", "ring", "12") for index in (10, 9, 0, 11, 1)]
    assert ["w-0", "w-1", "w-9", "w-10", "w-11"] == [pod.name for pod in evaluated(pods).members]


pods_of_groups = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 20)), min_size=1, max_size=30, unique=True
)


@given(pods_of_groups, st.randoms(use_true_random=False))
def test_grouping_does_not_depend_on_the_order_of_events(
    drawn: list[tuple[int, int]], order: random.Random
) -> None:
    pods = [build.labelled(f"g{group}-{number}", f"g{group}", "40") for group, number in drawn]
    removed = order.sample(pods, k=len(pods) // 3)

    def grouped(events: list[Pod]) -> dict[str, Workload]:
        groups = Groups()
        for pod in events:
            groups.put(pod, claims.of(pod, []))
        for pod in order.sample(removed, k=len(removed)):
            groups.remove(pod.uid)
        keys = {claims.of(pod, []).key for pod in pods}
        return {key: workload.evaluate(found) for key in keys if (found := groups.members(key))}

    assert grouped(pods) == grouped(order.sample(pods, k=len(pods)))


def test_a_pod_that_changes_its_workload_leaves_the_old_one() -> None:
    groups = Groups()
    pod = build.labelled("a", "ring")
    member = claims.of(pod, [])
    assert groups.put(pod, member) is None
    assert member.key == groups.put(pod, membership.alone(pod))
    assert [] == groups.members(member.key)
    assert alone_key(pod.uid) == groups.key(pod.uid)
    assert alone_key(pod.uid) == groups.remove(pod.uid)
    assert groups.remove(pod.uid) is None


@pytest.mark.parametrize(
    ("named", "is_recorded", "found"),
    [
        pytest.param("ring", True, "ring", id="as recorded"),
        pytest.param("somebody-else", True, "ring", id="changed by somebody"),
        pytest.param("x" * 200_000, True, "ring", id="200 kB"),
        pytest.param("ring", False, "ring", id="by a version that recorded no grant"),
        pytest.param("x" * 200_000, False, "uid-team-a-odd", id="200 kB, and no grant"),
    ],
)
def test_a_placed_pod_belongs_to_the_workload_that_its_grant_names(
    named: str, found: str, *, is_recorded: bool
) -> None:
    whose = Identity(
        cluster=ClusterId("c"),
        kind="Job",
        namespace="ns",
        name="ring",
        key=WorkloadKey("ring"),
        pods=(),
    )
    granted = Grant(name="ring", user="a", group="b", memory_mib_per_node=1, started_s=1)
    text = grant.encode(whose, granted) if is_recorded else ""
    pod = build.placed(build.pod("odd"), named, 0)
    pod = replace(pod, annotations={**pod.annotations, names.GRANT_ANNOTATION: text})

    assert found == membership.placed(pod).key
