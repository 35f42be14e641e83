"""Two tenants under a policy, with slurmdbd enforcing limits: whose jobs are whose, and what they may ask for."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from sandbox.api import ApiError
from slurmruntime.values import names
from tests.integration.creators import (
    ALICE,
    BOB,
    Tenants,
    make_job,
    owner,
    pod_of,
    policy,
)
from tests.integration.policed import READERS, person
from tests.integration.worlds import HOST_PORT, Worlds, condition, is_gated, played

ASK = "slurmjob.slinky.slurm.net"


pytestmark = pytest.mark.usefixtures("room")


def asks(**fields: str) -> dict[str, str]:
    return {f"{ASK}/{name.replace('_', '-')}": value for name, value in fields.items()}


def test_each_lands_in_the_own_account_under_the_own_user(tenants: Tenants) -> None:
    hers = tenants.physics.submit("hers", annotations=played(seconds=1), by=tenants.alice)
    his = tenants.chemistry.submit("his", annotations=played(seconds=1), by=tenants.bob)

    assert "physics|alice|alice" == owner(tenants.sandbox, hers, tenants.physics)
    assert "chemistry|bob|bob" == owner(tenants.sandbox, his, tenants.chemistry)
    identity = tenants.physics.accounted(hers)[0].identity
    assert identity is not None
    assert identity.frozen is not None
    assert (ALICE, "physics", "alice", "physics") == (
        identity.frozen.requester,
        identity.frozen.rule,
        identity.frozen.user,
        identity.frozen.account,
    )


def test_what_is_allowed_reaches_slurm(tenants: Tenants) -> None:
    uid = tenants.physics.submit(
        "asks",
        annotations=asks(qos="long", nice="7", timelimit="50", hold="true"),
        by=tenants.alice,
    )
    job = tenants.physics.await_live(uid)

    shown = tenants.physics.scontrol("show", "job", str(job.id))
    for expected in ("UserId=alice(", "Account=physics ", "QOS=long", "Nice=7 ", "TimeLimit=00:50"):
        assert expected in shown


@pytest.mark.attack(
    "ask for somebody else's account, a QOS, a priority",
    "policy rules, in the webhook and before each submit",
)
@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"account": "chemistry"}, "expected physics (policy rule physics), found 'chemistry'"),
        ({"qos": "high"}, "expected normal, long (policy rule physics), found 'high'"),
        ({"priority": "9000"}, "refused: users may not set it (policy rule physics), found 9000"),
        ({"nice": "-1"}, "expected 0 to 100 (policy rule physics), found -1"),
        ({"timelimit": "61"}, "expected at most 60 minutes (policy rule physics), found 61"),
        ({"user_id": "bob"}, "expected alice (policy rule physics), found 'bob'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_more_is_refused_at_create_with_what_is_allowed(
    tenants: Tenants, asked: Mapping[str, str], told: str
) -> None:
    with pytest.raises(ApiError) as refused:
        tenants.physics.submit("greedy", annotations=asks(**asked), by=tenants.alice)

    assert 422 == refused.value.status
    assert f"metadata.annotations[{next(iter(asks(**asked)))}]: {told}" in refused.value.message
    assert tenants.physics.pod("greedy") is None


@pytest.mark.attack(
    "impersonate somebody by annotation",
    "the webhook overwrites it from the authenticated request",
)
def test_nobody_is_somebody_else_by_an_annotation(tenants: Tenants) -> None:
    """What is written there is written over; later nobody can change it."""
    forged = {names.REQUESTER_ANNOTATION: BOB, names.RULES_ANNOTATION: "chemistry"}
    uid = tenants.physics.submit(
        "forged", annotations={**forged, **asks(hold="true")}, by=tenants.alice
    )

    written = tenants.physics.await_pod("forged", bool)["metadata"]["annotations"]
    assert {names.REQUESTER_ANNOTATION: ALICE, names.RULES_ANNOTATION: "physics"} == {
        key: written[key] for key in forged
    }
    for key, value in forged.items():
        change = {"metadata": {"annotations": {key: value}}}
        with pytest.raises(ApiError) as refused:
            tenants.alice.patch(f"{tenants.physics.path}/pods/forged", change)
        assert key in refused.value.message
    job = tenants.physics.await_live(uid)
    assert "UserId=alice(" in tenants.physics.scontrol("show", "job", str(job.id))


def test_who_matches_no_rule_is_refused_by_name(tenants: Tenants) -> None:
    tenants.files.put({"rules": policy(tenants.physics.namespace)["rules"][:2]})
    try:
        with pytest.raises(ApiError) as refused:
            tenants.chemistry.submit("stranger", by=tenants.bob)
    finally:
        tenants.files.put(policy(tenants.physics.namespace))

    assert (
        f"policy: refused: no policy rule allows user '{BOB}' to have Slurm jobs in namespace "
        f"{tenants.chemistry.namespace}" in refused.value.message
    )


def test_beyond_a_limit_of_the_account_a_pod_waits_and_is_told_why(tenants: Tenants) -> None:
    limit = ("-i", "modify", "account", "physics", "set")
    tenants.sandbox.run("sacctmgr", *limit, "GrpTRES=cpu=2")
    try:
        first = tenants.physics.submit("first", cpus="2", by=tenants.alice)
        tenants.physics.await_phase("first", "Running")
        second = tenants.physics.submit(
            "second", cpus="1", annotations=played(seconds=1), by=tenants.alice
        )

        told = tenants.physics.await_pod(
            "second", lambda pod: condition(pod).get("reason") == "AssocGrpCpuLimit"
        )
        assert is_gated(told)
        says = condition(told)["message"]
        assert "(AssocGrpCpuLimit)" in says
        assert tenants.physics.await_event("second", "AssocGrpCpuLimit").endswith(says)

        tenants.physics.scancel(tenants.physics.live(first)[0].id)
        tenants.physics.await_phase("second", "Succeeded")
    finally:
        tenants.sandbox.run("sacctmgr", *limit, "GrpTRES=cpu=-1")
    assert "physics|alice|alice" == owner(tenants.sandbox, second, tenants.physics)


def test_a_refusal_is_reported_in_slurms_words(tenants: Tenants) -> None:
    """Our policy allows it, and its association does not."""
    uid = tenants.chemistry.submit("his", annotations=asks(account="nowhere"), by=tenants.bob)

    told = tenants.chemistry.await_pod(
        "his", lambda pod: condition(pod).get("reason") == "SubmitRefused"
    )
    words = condition(told)["message"]
    assert "Invalid account" in words
    assert words == tenants.chemistry.await_event("his", "SubmitRefused")
    assert [] == tenants.chemistry.jobs(uid)


@pytest.mark.attack(
    "create very many pods that Slurm refuses",
    "one asks for all that are alike",
)
def test_of_pods_that_are_refused_alike_one_asks_slurm_for_all(tenants: Tenants) -> None:
    rejected = 'slurm_bridge_slurm_requests_total{operation="job.submit",outcome="rejected"}'
    limit = ("-i", "modify", "account", "chemistry", "set")
    pods = [f"alike-{number}" for number in range(16)]
    tenants.sandbox.run("sacctmgr", *limit, "GrpSubmitJobs=0")
    try:
        tenants.chemistry.submit("first", by=tenants.bob)
        tenants.chemistry.await_pod("first", is_refused)
        before = tenants.files.metric("extender", rejected)
        for name in pods:
            tenants.chemistry.submit(name, by=tenants.bob)
        for name in pods:
            tenants.chemistry.await_pod(name, is_refused)
        asked = tenants.files.metric("extender", rejected) - before
    finally:
        tenants.sandbox.run("sacctmgr", *limit, "GrpSubmitJobs=-1")

    assert asked < len(pods)
    tenants.chemistry.await_phase(pods[0], "Running")


def is_refused(pod: dict[str, Any]) -> bool:
    """Whether Slurm has refused its job."""
    return condition(pod).get("reason") == "SubmitRefused"


@pytest.mark.attack(
    "make a rule result in SlurmUser, by name or by uid",
    "the extender asks Slurm who that is",
)
def test_nobody_is_slurms_own_user(tenants: Tenants) -> None:
    """Whatever the administrator reserves: who SlurmUser is, Slurm says itself."""
    is_operator = r"SlurmUser\s*=\s*(\w+)\((\d+)\)"
    ((name, uid),) = re.findall(is_operator, tenants.physics.scontrol("show", "config"))
    with person(tenants.sandbox, tenants.physics.namespace, name) as mallory:
        for written, made in (("{user}", name), (uid, uid)):
            rule = {"name": "each", "user": written, "account": {"default": "kubernetes"}}
            tenants.files.put({"rules": [rule], "reserved_users": ["nobody"]})
            try:
                pod_uid = tenants.physics.submit(f"is-{made}", by=mallory)
                told = tenants.physics.await_pod(f"is-{made}", is_refused)
            finally:
                tenants.files.put(policy(tenants.physics.namespace))

            assert f"makes '{made}' the Slurm user" in condition(told)["message"]
            assert [] == tenants.physics.jobs(pod_uid)


@pytest.mark.attack(
    "get the jobs of root by a rule that names a uid",
    "no rule results in root, by name or by uid",
)
@pytest.mark.parametrize("root", ["0", "00", "root"])
def test_no_rule_makes_anybody_root(tenants: Tenants, root: str) -> None:
    rule = {"name": "slip", "user": "{user}", "user_table": {ALICE: root}, "group": "alice"}
    tenants.files.put({"rules": [rule]})
    try:
        with pytest.raises(ApiError) as refused:
            tenants.physics.submit("roots", by=tenants.alice)
    finally:
        tenants.files.put(policy(tenants.physics.namespace))

    assert f"policy: refused: policy rule slip makes '{root}'" in refused.value.message


@pytest.mark.attack(
    "raise a request by editing an owner later",
    "the request is frozen in the job's record",
)
def test_an_owner_that_is_edited_later_raises_nothing(tenants: Tenants, elsewhere: Worlds) -> None:
    """Slurm gets the same request again, though its first answer was of no use and the owner asks for more by now."""
    chemistry = tenants.chemistry
    elsewhere.submit(
        "squatter",
        containers=[{"name": "main", "image": "example.test/image", **HOST_PORT}],
        tolerations=[{"key": names.MANAGED_NODE_TAINT, "operator": "Exists"}],
        nodeSelector={"kubernetes.io/hostname": "node-0"},
    )
    elsewhere.await_phase("squatter", "Running")
    with chemistry.strangers_on("node-0", "node-1", "node-2", "node-3") as strangers:
        make_job(chemistry, "grows", tenants.bob, annotations=asks(timelimit="5"), **HOST_PORT)
        uid = pod_of(chemistry, "grows")["metadata"]["uid"]
        first = chemistry.await_live(uid, lambda job: job.state == "PENDING")
        path = f"/apis/batch/v1/namespaces/{chemistry.namespace}/jobs/grows"
        tenants.bob.patch(path, {"metadata": {"annotations": asks(timelimit="500")}})
        tenants.sandbox.restart("extender")  # what it remembers of the owner must not help
        tenants.files.put(policy(tenants.physics.namespace))  # the sandbox has written its own

        chemistry.scancel(strangers["node-0"])
        second = chemistry.await_live(uid, lambda job: job.id != first.id)

        assert "TimeLimit=00:05:00" in chemistry.scontrol("show", "job", str(second.id))


def test_a_policy_with_faults_changes_nothing(tenants: Tenants) -> None:
    before = {name: tenants.files.file(name).read_text() for name in READERS}
    for name in READERS:
        tenants.files.file(name).write_text("policy: {rules: [{name: broken}]}\n")
    try:
        for name in READERS:
            tenants.files.await_current(name, is_current=False)
            log = tenants.sandbox.instance.log(name).read_text()
            assert "policy.rules[0].user" in log
        uid = tenants.physics.submit("hers", annotations=played(seconds=1), by=tenants.alice)
        assert "physics|alice|alice" == owner(tenants.sandbox, uid, tenants.physics)
    finally:
        for name, text in before.items():
            tenants.files.file(name).write_text(text)
        for name in READERS:
            tenants.files.await_current(name, is_current=True)
