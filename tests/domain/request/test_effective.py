"""The effective request: everything that was read, decided on at once."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from bridge.domain.caps import Sizes
from bridge.domain.model.identities import FirstSubmission, Identity
from bridge.domain.model.placeholder import PlaceholderSpec
from bridge.domain.model.pods import Pod
from bridge.domain.request import candidates
from bridge.domain.request.attribution import Provenance
from bridge.domain.request.build import Defaults
from bridge.domain.request.effective import RequestFacts, deciding_members, effective, former
from bridge.domain.request.rules import Choice, Patterns, Policy, Rule
from bridge.domain.workloads import claims, workload
from slurmruntime.model.objects import KubeObject
from slurmruntime.values import names
from slurmruntime.values.faults import Refusal
from slurmruntime.values.ids import PodUid, SlurmNode, WorkloadKey
from tests.make import placing as make

CREATOR = "example.test/creator"
CONTROLLER = "system:serviceaccount:kube-system:job-controller"
OPEN = Choice(allowed=Patterns("*"))
RULE = Rule(name="all", source="policy rule all", user="{user}", account=OPEN, qos=OPEN)
POLICY = Policy(rules=(RULE,))
DEFAULTS = Defaults(
    cluster=make.CLUSTER,
    priority_classes={"urgent": {"qos": "high", "comment": "by class"}},
)
POOL = candidates.pool([make.kube_node("k1")], [make.slurm_node("k1")], make.CLUSTER)


def request(**fields: str) -> dict[str, str]:
    return {f"{names.REQUEST_PREFIX}{name}": value for name, value in fields.items()}


def pod(
    uid: str = "u-1", *, by: str = "alice", said: Mapping[str, str] | None = None, **more: Any
) -> Pod:
    annotations = {names.REQUESTER_ANNOTATION: by, **(said or {})}
    return make.pod(uid=PodUid(uid), annotations=annotations, **more)


def owner(
    kind: str = "Job",
    said: Mapping[str, str] | None = None,
    *,
    spec: Mapping[str, Any] | None = None,
) -> KubeObject:
    return KubeObject(
        kind=kind, uid=f"uid-{kind}", name="train", annotations=said or {}, spec=spec or {}
    )


def gathered(*members: Pod, owners: Sequence[KubeObject] = (), **more: Any) -> RequestFacts:
    provenance = Provenance(owners={member.uid: owners for member in members})
    known: dict[str, Any] = {"provenance": provenance, "policy": POLICY, "pool": POOL}
    return RequestFacts(members=members, **known | more)


def spec(found: RequestFacts) -> PlaceholderSpec:
    return effective(found, DEFAULTS)


def refused(found: RequestFacts) -> str:
    with pytest.raises(Refusal) as refusal:
        effective(found, DEFAULTS)
    return refusal.value.text


def test_what_the_webhook_would_have_refused_is_refused_before_a_submit_too() -> None:
    fat = pod("u-2", name="fat", sizes=Sizes(affinity_terms=51, host_ports=101))

    assert "expected at most 50 terms, found 51" in refused(gathered(fat))
    assert "fat: spec.containers[*].ports[*].hostPort: expected at most 100" in refused(
        gathered(pod(), fat)
    )


def test_what_was_decided_is_frozen_into_the_identity() -> None:
    made = spec(gathered(pod(said=request(qos="low"))))

    frozen = FirstSubmission(
        requester="alice", rule="all", user="alice", account="", asked={"qos": "low"}
    )
    assert frozen == made.identity.frozen
    assert ("low", None) == (made.qos, made.time_limit_min)


def test_the_pod_outweighs_its_owners_the_nearest_first_and_all_outweigh_its_class() -> None:
    nearest = owner("Job", request(qos="of-the-job", wckey="of-the-job"))
    root = owner("JobSet", request(qos="of-the-set", wckey="of-the-set", switches="1"))
    one = pod(said=request(qos="own"), priority_class="urgent")

    made = spec(gathered(one, owners=(nearest, root)))

    found = (made.qos, made.wckey, made.switches, made.comment)
    assert ("own", "of-the-job", "1", "by class") == found


def test_a_pod_that_owns_pods_hands_on_whose_they_are_and_where_but_not_its_size() -> None:
    """Spark: the driver's pod owns the executors."""
    said = {"qos": "high", "partition": "slurm-bridge", "wckey": "w", "account": "a"}
    own = {"mem-per-node": "3Gi", "cpu-per-task": "4", "timelimit": "5", "job-name": "driver"}
    own |= {"hold": "true", "begin": "2027-01-01T00:00:00Z", "licenses": "matlab", "nice": "5"}
    driver = owner("Pod", request(**said, **own), spec={"activeDeadlineSeconds": 120})
    application = owner("SparkApplication", request(comment="of all"))
    executor = pod(name="executor", demand=make.demands(memory="4Gi"))

    made = spec(gathered(executor, owners=(driver, application)))

    assert made.identity.frozen
    assert {**said, "comment": "of all"} == made.identity.frozen.asked
    assert ("executor", 4096, None) == (made.name, made.memory_mib_per_node, made.time_limit_min)


def test_the_leader_of_a_group_speaks_for_all_of_it() -> None:
    """A LeaderWorkerSet: the leader's pod owns the workers, and they are one job."""
    asked = request(timelimit="90", **{"cpu-per-task": "2"})
    leader = pod("uid-Pod", name="a", said=asked)
    worker = pod("u-2", name="b")
    provenance = Provenance(owners={worker.uid: (owner("Pod", asked),)})
    gang = gang_of(leader, worker)

    made = spec(gathered(leader, worker, **gang | {"provenance": provenance}))

    assert (2, 90) == (made.cpus_per_task, made.time_limit_min)


def test_a_pod_group_says_the_least_and_its_workload_more_than_owners() -> None:
    everywhere = {"comment": "group", "qos": "group", "wckey": "group", "switches": "1"}
    group = owner("PodGroup", request(**everywhere))
    job = owner("Job", request(qos="job", wckey="job", comment="job"))
    workload = owner("Workload", request(wckey="workload", comment="workload"))
    one = pod(said=request(comment="own"))
    provenance = Provenance(owners={one.uid: (job,)}, groups={one.uid: (group, workload)})

    made = spec(gathered(one, provenance=provenance))

    assert ("own", "workload", "job", "1") == (made.comment, made.wckey, made.qos, made.switches)


def test_a_pod_group_makes_nobody_the_creator() -> None:
    created = owner("PodGroup", {CREATOR: "victim"})
    one = pod(by=CONTROLLER)
    policy = replace(POLICY, creator_annotation=CREATOR, controllers=Patterns(CONTROLLER))
    provenance = Provenance(groups={one.uid: (created,)})

    why = refused(gathered(one, provenance=provenance, policy=policy))
    assert f"makes {CONTROLLER!r} the Slurm user" in why


def test_a_jobs_deadline_is_the_time_limit_of_a_pod_that_has_none() -> None:
    job = owner(spec={"activeDeadlineSeconds": 601})

    assert 11 == spec(gathered(pod(), owners=(job,))).time_limit_min
    assert 2 == spec(gathered(pod(deadline_s=120), owners=(job,))).time_limit_min


def test_an_unreadable_owner_has_no_say() -> None:
    assert spec(gathered(pod(), owners=())).time_limit_min is None


def test_what_it_was_submitted_with_counts_before_what_owners_say_now() -> None:
    changed = owner(said=request(qos="new"))

    made = spec(gathered(pod(), owners=(changed,), former={"qos": "old"}))

    assert "old" == made.qos
    assert made.identity.frozen
    assert {"qos": "old"} == made.identity.frozen.asked


def test_the_job_belongs_to_the_creator_of_the_nearest_owner_that_no_controller_made() -> None:
    policy = replace(POLICY, creator_annotation=CREATOR, controllers=Patterns([CONTROLLER]))
    job = owner("Job", {CREATOR: CONTROLLER, f"{CREATOR}.owner": "uid-JobSet"})
    jobset = owner("JobSet", {CREATOR: "bob"})

    def user(*owners: KubeObject, at_create: str = "uid-Job") -> str:
        by_a_controller = pod(by=CONTROLLER, said={names.OWNER_ANNOTATION: at_create})
        rules = (replace(RULE, user="{user}", user_table={"bob": "bob", CONTROLLER: "nobody"}),)
        found = gathered(by_a_controller, owners=owners, policy=replace(policy, rules=rules))
        return spec(found).user

    assert "bob" == user(job, jobset)
    assert "nobody" == user(job)
    assert "nobody" == user()
    edited_later = owner("Job", {CREATOR: CONTROLLER, f"{CREATOR}.owner": "uid-other"})
    assert "nobody" == user(edited_later, jobset)
    assert "nobody" == user(owner("Job", {CREATOR: CONTROLLER}), jobset)
    assert "nobody" == user(jobset, at_create="uid-Job")  # adopted


def test_nobody_without_a_rule_gets_a_job() -> None:
    assert "no policy rule allows" in refused(
        gathered(pod(), policy=Policy(rules=(replace(RULE, namespaces=Patterns(["lab"])),)))
    )


def test_a_rule_may_ask_for_the_labels_of_the_namespace() -> None:
    policy = Policy(rules=(replace(RULE, namespace_labels={"team": "a"}),))
    labelled = Provenance(namespace_labels={"team": "a"})

    assert "alice" == spec(gathered(pod(), policy=policy, provenance=labelled)).user
    assert "no policy rule" in refused(gathered(pod(), policy=policy))


def test_all_faults_of_the_annotations_are_told_at_once() -> None:
    text = refused(gathered(pod(said=request(timelimit="soon", colour="blue"))))

    assert "timelimit" in text
    assert "colour" in text


def gang_of(*pods: Pod) -> dict[str, Any]:
    job = owner(said={names.GANG_ANNOTATION: "true"}, spec={"parallelism": len(pods)})
    members = [(claims.of(each, [job]), each) for each in pods]
    return {"gang": workload.evaluate(members)}


def test_a_gang_is_one_job_for_all() -> None:
    pods = (pod("u-1", name="a"), pod("u-2", name="b"))

    made = spec(gathered(*pods, **gang_of(*pods)))

    assert (2, ("u-1", "u-2")) == (made.tasks, made.identity.pods)


def test_a_gangs_pods_ask_for_the_same() -> None:
    pods = (pod("u-1", name="a"), pod("u-2", name="b", said=request(qos="other")))

    assert "a and b do not" in refused(gathered(*pods, **gang_of(*pods)))


def test_a_gangs_pods_are_of_one_user() -> None:
    pods = (pod("u-1", name="a"), pod("u-2", name="b", by="bob"))

    assert "a job has one user" in refused(gathered(*pods, **gang_of(*pods)))


def test_nodes_to_avoid_are_excluded() -> None:
    two = [make.kube_node("k1"), make.kube_node("k2")]
    pool = candidates.pool(two, [make.slurm_node("k1"), make.slurm_node("k2")], make.CLUSTER)

    made = spec(gathered(pod(), pool=pool, avoid=(SlurmNode("k2"),)))

    assert ("k2",) == made.excluded_nodes


def identity(*pods: str, qos: str) -> Identity:
    frozen = FirstSubmission(
        requester="alice", rule="all", user="alice", account="", asked={"qos": qos}
    )
    return Identity(
        cluster=make.CLUSTER,
        kind="pod-group",
        namespace="team-a",
        name="ring",
        key=WorkloadKey("pod-group/team-a/ring"),
        pods=tuple(map(PodUid, pods)),
        frozen=frozen,
    )


def test_a_group_of_the_same_name_with_other_pods_was_never_submitted() -> None:
    submitted = [identity("u-1", qos="first"), identity("u-1", "u-2", qos="second")]

    assert {"qos": "second"} == former(submitted, [pod("u-1")])
    assert former(submitted, [pod("u-3")]) is None
    assert former([replace(submitted[0], frozen=None)], [pod("u-1")]) is None


def test_only_owners_that_have_a_say_are_to_be_read() -> None:
    pods = (pod("u-1", deadline_s=60), pod("u-2"))
    for_others = replace(POLICY, creator_annotation=CREATOR, controllers=Patterns(["alice"]))

    assert pods == deciding_members(pods, POLICY, was_submitted=False)
    assert () == deciding_members(pods, POLICY, was_submitted=True)
    assert pods == deciding_members(pods, for_others, was_submitted=True)
    assert pods[1:] == deciding_members(pods[1:], POLICY, was_submitted=True), (
        "for its Job's deadline"
    )
