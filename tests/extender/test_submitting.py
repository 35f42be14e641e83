"""A submit among recording peers: what is read, what is sent, and what is remembered when it goes wrong."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from bridge.domain.lifecycle.actions import Submit
from bridge.domain.model.identities import Identity, decode
from bridge.domain.model.pods import Pod
from bridge.domain.request import candidates
from bridge.domain.request.build import Defaults
from bridge.domain.request.rules import Choice, Patterns, Policy, Rule
from slurmclient import errors
from slurmruntime.kube import errors as kube_errors
from slurmruntime.model.objects import KubeObject, Owner
from slurmruntime.values import names
from slurmruntime.values.ids import PodUid, alone_key
from tests.extender.peers import Stage, accepted, rejected, stage, words
from tests.make import placing as make

CONTROLLER = "system:serviceaccount:kube-system:job-controller"
QOS = f"{names.REQUEST_PREFIX}qos"
JOB = Owner(api_version="batch/v1", kind="Job", name="train", uid="uid-of-train")
RULE = Rule(name="all", source="policy rule all", user="someone", qos=Choice(allowed=Patterns("*")))
POLICY = Policy(rules=(RULE,))
DEFAULTS = Defaults(cluster=make.CLUSTER)
POOL = candidates.pool([make.kube_node("k1")], [make.slurm_node("k1")], make.CLUSTER)
POD = make.pod(owner=JOB, annotations={names.REQUESTER_ANNOTATION: "alice"})
SUBMIT = Submit()


def owner(**annotations: str) -> KubeObject:
    notes = {key.replace("qos", QOS): value for key, value in annotations.items()}
    return KubeObject(kind="Job", uid=JOB.uid, name=JOB.name, annotations=notes)


@pytest.fixture
def around() -> Stage:
    """A Job that asks for a QOS, and a slurmrestd that takes what comes."""
    found = stage(lambda: POLICY, DEFAULTS, POOL)
    found.cluster.objects["Job", "train"] = owner(qos="of-the-job")
    return found


def identity_of(sent: dict[str, object]) -> Identity:
    identity = decode(str(sent["admin_comment"]))
    assert identity is not None
    return identity


async def test_what_was_read_is_submitted_once(around: Stage) -> None:
    around.slurmrestd.answers = [accepted(7)]

    await around.submitter.submit(POD, SUBMIT)

    (sent,) = around.slurmrestd.submitted
    assert ("someone", "of-the-job") == (sent["user_id"], sent["qos"])
    assert [(POD.uid, False)] == around.readings.writes
    assert around.submitter.refusal(alone_key(POD.uid)) is None


async def test_each_owner_is_read_once_although_it_says_who_asks_and_for_what() -> None:
    policy = Policy(
        rules=(replace(RULE, namespace_labels={"team": "a"}),),
        creator_annotation="creator",
        controllers=Patterns([CONTROLLER]),
    )
    around = stage(lambda: policy, DEFAULTS, POOL)
    around.namespaces.labels["team"] = "a"
    around.cluster.objects["Job", "train"] = owner(creator="bob", qos="of-the-job")
    around.slurmrestd.answers = [accepted(7)]
    made_by = {names.REQUESTER_ANNOTATION: CONTROLLER, names.OWNER_ANNOTATION: JOB.uid}
    by_a_controller = replace(POD, annotations=made_by)

    await around.submitter.submit(by_a_controller, SUBMIT)

    assert [("Job", "train")] == around.cluster.read
    assert 1 == around.namespaces.asked
    frozen = identity_of(around.slurmrestd.submitted[0]).frozen
    assert frozen is not None
    assert ("bob", {"qos": "of-the-job"}) == (frozen.requester, frozen.asked)


async def test_slurms_refusals_are_counted_until_it_accepts(around: Stage) -> None:
    around.slurmrestd.answers = [rejected("Invalid qos"), rejected("Still invalid"), accepted(7)]

    found = []
    for _ in range(3):
        await around.submitter.submit(POD, SUBMIT)
        refusal = around.submitter.refusal(alone_key(POD.uid))
        found.append((refusal.attempts, refusal.text) if refusal else None)

    assert [(1, "Invalid qos"), (2, "Still invalid"), None] == found
    assert [(POD.uid, False)] * 3 == around.readings.writes


async def test_of_many_hopeless_pods_one_asks_for_all(around: Stage) -> None:
    """Slurm is asked again by whoever asked before, or after a while; an acceptance counts for all."""
    alike = [replace(POD, uid=PodUid(f"u-{number}"), name=f"p-{number}") for number in range(100)]
    larger = replace(POD, uid=PodUid("large"), demand=make.demands("2"))
    around.slurmrestd.answers = [rejected("At the limit"), rejected("Too large"), accepted(7)]

    for pod in alike:
        await around.submitter.submit(pod, SUBMIT)
    await around.submitter.submit(larger, SUBMIT)

    assert ["p-0", "train"] == words(around.slurmrestd.submitted, "name")
    told = [around.submitter.refusal(alone_key(pod.uid)) for pod in alike]
    assert {("At the limit", 1)} == {(each.text, each.attempts) for each in told if each}
    assert all(told)
    await around.submitter.submit(alike[0], SUBMIT)
    around.slurmrestd.answers = [accepted(8)]
    await around.submitter.submit(alike[1], SUBMIT)
    assert ["p-0", "train", "p-0", "p-1"] == words(around.slurmrestd.submitted, "name")


async def test_what_cannot_be_submitted_is_refused_before_slurm_hears_of_it(around: Stage) -> None:
    asks = {f"{names.REQUEST_PREFIX}timelimit": "soon", f"{names.REQUEST_PREFIX}colour": "blue"}
    odd = replace(POD, annotations=asks)

    await around.submitter.submit(odd, SUBMIT)

    refusal = around.submitter.refusal(alone_key(POD.uid))
    assert refusal is not None
    assert "timelimit" in refusal.text
    assert "colour" in refusal.text
    assert [] == around.slurmrestd.submitted
    assert [(POD.uid, False)] == around.readings.writes


async def test_an_edit_and_an_end_forget_what_was_refused(around: Stage) -> None:
    key = alone_key(POD.uid)
    forgetting = (
        partial(around.submitter.retry, POD.uid),
        partial(around.submitter.forget, key),
    )
    for forget in forgetting:
        around.slurmrestd.answers = [rejected("Invalid qos")]
        await around.submitter.submit(POD, SUBMIT)
        assert around.submitter.refusal(key) is not None

        forget()

        assert around.submitter.refusal(key) is None


async def test_a_lost_reply_is_no_refusal_and_the_submit_may_still_happen(around: Stage) -> None:
    around.slurmrestd.answers = [errors.LostReply("job.submit", "cut off")]

    with pytest.raises(errors.LostReply):
        await around.submitter.submit(POD, SUBMIT)

    assert [(POD.uid, True)] == around.readings.writes
    assert around.submitter.refusal(alone_key(POD.uid)) is None


async def test_what_a_found_job_was_asked_for_counts_whatever_its_owner_says_now(
    around: Stage,
) -> None:
    """A reply was lost, or a predecessor submitted: the job shows up with its request frozen in it."""
    around.slurmrestd.answers = [errors.LostReply("job.submit", "cut off"), accepted(8)]
    with pytest.raises(errors.LostReply):
        await around.submitter.submit(POD, SUBMIT)
    around.readings.show(identity_of(around.slurmrestd.submitted[0]))
    around.cluster.objects["Job", "train"] = owner(qos="changed")

    successor = stage(lambda: POLICY, DEFAULTS, POOL)
    successor.cluster.objects["Job", "train"] = owner(qos="changed")
    successor.slurmrestd.answers = [accepted(8)]
    successor.readings.shown.update(around.readings.shown)
    await successor.submitter.submit(POD, SUBMIT)

    assert ["of-the-job"] == words(successor.slurmrestd.submitted, "qos")


async def test_what_was_accepted_is_asked_again_though_slurm_has_forgotten_it(
    around: Stage,
) -> None:
    around.slurmrestd.answers = [accepted(7), accepted(8), accepted(9)]
    await around.submitter.submit(POD, SUBMIT)
    # Nothing is remembered of an owner with another uid.
    around.cluster.objects["Job", "train"] = replace(owner(qos="changed"), uid="another")
    later = replace(POD, owner=replace(JOB, uid="another"))

    await around.submitter.submit(later, SUBMIT)
    around.submitter.forget(alone_key(POD.uid))
    await around.submitter.submit(later, SUBMIT)

    sent = words(around.slurmrestd.submitted, "qos")
    assert ["of-the-job", "of-the-job", "changed"] == sent


async def test_an_owner_that_is_missing_has_no_say(around: Stage) -> None:
    around.cluster.objects.clear()
    around.slurmrestd.answers = [accepted(7)]

    await around.submitter.submit(POD, SUBMIT)

    assert [None] == words(around.slurmrestd.submitted, "qos")


async def test_nothing_is_submitted_while_an_owner_cannot_be_asked_for(around: Stage) -> None:
    silent = kube_errors.Unavailable("GET", "/train", message="no answer")
    around.cluster.objects["Job", "train"] = silent

    with pytest.raises(kube_errors.Unavailable):
        await around.submitter.submit(POD, SUBMIT)

    assert [] == around.slurmrestd.submitted
    assert [(POD.uid, False)] == around.readings.writes
    assert around.submitter.refusal(alone_key(POD.uid)) is None


async def test_a_pod_of_another_user_gets_no_place_in_somebodys_job(around: Stage) -> None:
    around.slurmrestd.answers = [accepted(7)]
    await around.submitter.submit(POD, SUBMIT)
    job = around.readings.show(identity_of(around.slurmrestd.submitted[0]))
    frozen = job.identity.frozen
    assert frozen is not None
    others = replace(job, identity=replace(job.identity, frozen=replace(frozen, user="other")))
    unsaid = replace(job, identity=replace(job.identity, frozen=None))
    newcomer: Pod = replace(POD, uid=PodUid("u-2"), created_at=POD.created_at + timedelta(1))

    admits = around.submitter.admits

    assert [True, False, False] == [await admits(newcomer, each) for each in (job, others, unsaid)]
