"""Two tenants under a policy, with slurmdbd enforcing limits: whose jobs are whose, and what they may ask for."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from bridge.domain import names
from sandbox.api import ApiError
from sandbox.client import Sandbox
from tests.integration.creators import (
    ALICE,
    BOB,
    CREATOR,
    CRONJOBS,
    Tenants,
    creators_recorded,
    make_job,
    pod_of,
    policy,
)
from tests.integration.policed import PATIENCE_S, READERS, person, policed
from tests.integration.worlds import HOST_PORT, Worlds, condition, container, is_gated, played
from tests.servers import fresh_namespace, wait_until

ASK = "slurmjob.slinky.slurm.net"


def asks(**fields: str) -> dict[str, str]:
    return {f"{ASK}/{name.replace('_', '-')}": value for name, value in fields.items()}


@pytest.fixture(scope="module")
def accounts(full_sandbox: Sandbox) -> None:
    """Accounts of their own in Slurm, beside the sandbox's one."""

    def sacctmgr(*arguments: str) -> None:
        full_sandbox.run("sacctmgr", "-i", *arguments)

    for qos in ("long", "high"):
        sacctmgr("add", "qos", qos)
    for account, user in (("physics", "alice"), ("chemistry", "bob")):
        sacctmgr("add", "account", account)
        sacctmgr("add", "user", user, f"account={account}")
        sacctmgr("modify", "account", account, "set", "qos=normal,long")


@pytest.fixture(scope="module")
def tenants(full_sandbox: Sandbox, accounts: None) -> Iterator[Tenants]:
    labels = {names.ENABLED_LABEL: "true"}
    with (
        fresh_namespace(full_sandbox, labels=labels) as physics,
        fresh_namespace(full_sandbox, labels={**labels, "tenant": "chemistry"}) as chemistry,
        policed(full_sandbox, policy(physics)) as files,
        person(full_sandbox, physics, ALICE, "physicists") as alice,
        person(full_sandbox, chemistry, BOB, "chemists") as bob,
    ):
        yield Tenants(
            sandbox=full_sandbox,
            files=files,
            physics=Worlds(full_sandbox, physics),
            chemistry=Worlds(full_sandbox, chemistry),
            alice=alice,
            bob=bob,
        )


@pytest.fixture(autouse=True)
def room(tenants: Tenants) -> Iterator[None]:
    yield
    for worlds in (tenants.physics, tenants.chemistry):
        worlds.clear()


def owner(sandbox: Sandbox, uid: str, worlds: Worlds) -> str:
    """Who pays for a workload's job: account, user and group, as sacct has them."""
    job = worlds.await_accounted(uid)
    fields = ("-X", "-P", "-n", "-o", "Account,User,Group", "-j", str(job.id))
    return sandbox.run("sacct", *fields).strip()


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
        f"policy: refused: no policy rule lets user '{BOB}' have Slurm jobs in namespace "
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


@pytest.fixture
def recorded(tenants: Tenants) -> Iterator[None]:
    """The rule by groups does not hold: what is recorded of a creator is the name alone."""
    whole = policy(tenants.physics.namespace)
    tenants.files.put({**whole, "creator_annotation": CREATOR, "rules": whole["rules"][1:]})
    yield
    tenants.files.put(whole)


@pytest.mark.usefixtures("recorded")
def test_a_controllers_pod_is_its_owners_creators(tenants: Tenants) -> None:
    """Where the cluster records creators, as this cluster's administrator plays here."""
    physics = tenants.physics
    make_job(physics, "hers", tenants.alice, annotations={CREATOR: ALICE})
    make_job(physics, "anyones", tenants.alice)

    hers, anyones = (pod_of(physics, name)["metadata"] for name in ("hers", "anyones"))

    assert hers["annotations"][names.REQUESTER_ANNOTATION].endswith(":job-controller")
    assert "physics|alice|alice" == owner(tenants.sandbox, hers["uid"], physics)
    assert "kubernetes|kubernetes|kubernetes" == owner(tenants.sandbox, anyones["uid"], physics)


@pytest.mark.attack(
    "claim somebody's owner, and with it its creator, at CREATE",
    "the owner's uid, and who may be its controller, are checked",
)
@pytest.mark.usefixtures("recorded")
def test_nobody_is_somebody_else_by_writing_owners(tenants: Tenants) -> None:
    """A Job of Mallory's that says that one of Alice's owns it makes pods of Mallory's."""
    physics = tenants.physics
    uid = make_job(physics, "victim", tenants.alice, annotations={CREATOR: ALICE})
    victim = {"apiVersion": "batch/v1", "kind": "Job", "name": "victim", "uid": uid}
    make_job(
        physics,
        "forged",
        tenants.alice,
        annotations={CREATOR: "mallory"},
        ownerReferences=[{**victim, "controller": True}],
    )

    forged = pod_of(physics, "forged")["metadata"]["uid"]

    assert "kubernetes|kubernetes|kubernetes" == owner(tenants.sandbox, forged, physics)


@pytest.mark.attack(
    "become somebody by giving a controller's Job to that person's CronJob later",
    "only owners recorded at CREATE count",
)
@pytest.mark.usefixtures("recorded")
def test_nobody_is_somebody_else_by_editing_the_owners_of_a_controllers_job(
    tenants: Tenants,
) -> None:
    """A Job that its CronJob's controller made is Mallory's to edit: here she gave it to Alice's."""
    physics = tenants.physics
    uid = make_job(physics, "alices", tenants.alice, annotations={CREATOR: ALICE})
    victim = {"apiVersion": "batch/v1", "kind": "Job", "name": "alices", "uid": uid}

    def made_by_a_controller(name: str, recorded_owner: str) -> str:
        make_job(
            physics,
            name,
            tenants.alice,
            annotations={CREATOR: CRONJOBS, f"{CREATOR}.owner": recorded_owner},
            ownerReferences=[{**victim, "controller": True}],
        )
        return str(pod_of(physics, name)["metadata"]["uid"])

    edited, honest = made_by_a_controller("edited", "mallorys"), made_by_a_controller("honest", uid)

    assert "kubernetes|kubernetes|kubernetes" == owner(tenants.sandbox, edited, physics)
    assert "physics|alice|alice" == owner(tenants.sandbox, honest, physics)


@pytest.fixture
def recording(tenants: Tenants) -> Iterator[None]:
    with creators_recorded(tenants.sandbox, tenants.physics.namespace):
        yield


@pytest.mark.usefixtures("recorded", "recording")
def test_the_suggested_policy_records_creators_and_owners(tenants: Tenants) -> None:
    """A Deployment of Alice's: its pod is of a ReplicaSet that a controller made."""
    physics = tenants.physics
    path = f"/apis/apps/v1/namespaces/{physics.namespace}/deployments"
    body: dict[str, Any] = {
        "metadata": {"name": "hers"},
        "spec": {
            "selector": {"matchLabels": {"app": "hers"}},
            "template": {
                "metadata": {"labels": {"app": "hers"}},
                "spec": {"containers": [container()]},
            },
        },
    }

    def is_recorded() -> bool:
        made = tenants.alice.request("POST", path, body, params={"dryRun": "All"})
        recorded: dict[str, str] = made["metadata"].get("annotations", {})
        return recorded.get(CREATOR) == ALICE

    wait_until(is_recorded, PATIENCE_S, sandbox=tenants.sandbox)
    tenants.alice.create(path, body)
    try:
        uid = physics.await_one_pod("app=hers", bool)["metadata"]["uid"]
        job = physics.await_live(uid)
        assert "UserId=alice(" in physics.scontrol("show", "job", str(job.id))
    finally:
        tenants.alice.delete(f"{path}/hers")


@pytest.mark.attack(
    "make a template result in SlurmUser",
    "the extender asks Slurm who that is",
)
def test_nobody_is_slurms_own_user(tenants: Tenants) -> None:
    """Whatever the administrator reserves: who SlurmUser is, Slurm says itself."""
    is_operator = r"SlurmUser\s*=\s*(\w+)\("
    (slurm_user,) = re.findall(is_operator, tenants.physics.scontrol("show", "config"))
    rule = {"name": "each", "user": "{user}", "account": {"default": "kubernetes"}}
    with person(tenants.sandbox, tenants.physics.namespace, slurm_user) as mallory:
        tenants.files.put({"rules": [rule], "reserved_users": ["nobody"]})
        try:
            uid = tenants.physics.submit("grows", by=mallory)
            told = tenants.physics.await_pod(
                "grows", lambda pod: condition(pod).get("reason") == "SubmitRefused"
            )
        finally:
            tenants.files.put(policy(tenants.physics.namespace))

    assert f"makes '{slurm_user}' the Slurm user" in condition(told)["message"]
    assert [] == tenants.physics.jobs(uid)


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
