"""Attacks through a real API server, by real users and service accounts. The list of all of them: docs/security.md."""

import json
import re
import ssl
from collections.abc import Iterator
from datetime import timedelta

import httpx
import pytest

from sandbox import chart
from sandbox.api import Api, ApiError
from sandbox.client import Sandbox
from slurmruntime.process.clock import SystemClock
from slurmruntime.values import names
from slurmruntime.values.names import REQUEST_PREFIX
from tests.integration.tampering import BREAK_GLASS, refusal
from tests.integration.worlds import PATIENCE_S, Worlds, container, job_id, played
from tests.servers import SERVICES, wait_until


@pytest.fixture
def alice(worlds: Worlds, full_sandbox: Sandbox) -> Iterator[Api]:
    """She has the role `edit` in the namespace."""
    full_sandbox.kubectl(
        *("create", "rolebinding", "edit", "--clusterrole=edit", "--user=alice"),
        *("--namespace", worlds.namespace),
    )
    with Api(full_sandbox.user_kubeconfig("alice")) as api:
        path = f"{worlds.path}/pods"
        wait_until(lambda: refusal(api, "GET", path) == "", 10, sandbox=full_sandbox)
        yield api


def asking(**fields: str) -> dict[str, str]:
    return {f"{REQUEST_PREFIX}{name.replace('_', '-')}": text for name, text in fields.items()}


def record_of(worlds: Worlds, job: int) -> str:
    """The job's admin_comment as it is."""
    lines = worlds.sandbox.run("squeue", "--noheader", "-j", str(job), "-O", "admin_comment:4000")
    return lines.strip()


@pytest.mark.attack(
    "put a victim's job id on one's own pod and delete the pod",
    "our labels cannot be written; and even if they could, a job is identified by its own record and SLUID",
)
def test_a_forged_label_cancels_nobodys_job(worlds: Worlds, full_sandbox: Sandbox) -> None:
    """Even where somebody may write it: what ends a job is the record in Slurm, not what a pod says."""
    victim = worlds.submit("victim")
    uid = worlds.submit("forger")
    its_pod = worlds.await_phase("victim", "Running")
    worlds.await_phase("forger", "Running")
    annotations = its_pod["metadata"]["annotations"]
    stolen = {
        key: annotations[key]
        for key in (names.SLUID_ANNOTATION, names.GRANT_ANNOTATION, names.NODE_ANNOTATION)
        if key in annotations
    }
    stolen_label = {names.JOB_ID_LABEL: str(job_id(its_pod))}
    forgery = {"metadata": {"labels": stolen_label, "annotations": stolen}}
    with Api(full_sandbox.user_kubeconfig("mallory", "system:masters", BREAK_GLASS)) as mallory:
        mallory.patch(f"{worlds.path}/pods/forger", forgery)

    worlds.delete("forger")
    wait_until(lambda: not worlds.live(uid), PATIENCE_S, sandbox=full_sandbox)

    assert [job_id(its_pod)] == [job.id for job in worlds.live(victim) if job.state == "RUNNING"]
    assert "Running" == worlds.await_pod("victim", bool)["status"]["phase"]


@pytest.mark.attack(
    "copy a victim's record into one's own job's comment or name",
    "only `admin_comment` is read",
)
def test_an_identity_in_a_comment_is_none(worlds: Worlds, alice: Api) -> None:
    victim = worlds.submit("victim")
    job = worlds.await_live(victim, lambda job: job.state == "RUNNING")
    record = record_of(worlds, job.id)
    assert victim in record

    thief = worlds.submit(
        "thief",
        annotations={**asking(comment=record, job_name=record), **played(seconds=1)},
        by=alice,
    )

    assert "COMPLETED" == worlds.await_accounted(thief).state
    assert [job.id] == [live.id for live in worlds.live(victim)]


@pytest.mark.safeguard(
    "excuse",
    "a tenant writes that the machine took a pod down",
    "nothing: role `edit` writes no status",
)
@pytest.mark.attack(
    "report one's own pod as failed, to free its job",
    "role",
)
def test_a_forged_status_frees_nothing(worlds: Worlds, alice: Api) -> None:
    uid = worlds.submit("hers", by=alice)
    job = worlds.await_live(uid, lambda job: job.state == "RUNNING")
    worlds.await_phase("hers", "Running")
    ended = {"status": {"phase": "Failed", "containerStatuses": []}}

    said = refusal(alice, "PATCH", f"{worlds.path}/pods/hers/status", ended)

    assert "cannot patch resource" in said
    assert [job.id] == [live.id for live in worlds.live(uid)]


@pytest.mark.safeguard(
    "orphans",
    "a tenant deletes own pods by force, so that their jobs hold nodes without pods",
    "nothing: the finalizer keeps each pod until its job has ended, and only break glass takes it off. Such a job would be charged anyway",
)
@pytest.mark.attack(
    "force deletion, to leave a job behind",
    "the finalizer",
)
def test_a_forced_deletion_leaves_no_job_behind(worlds: Worlds, alice: Api) -> None:
    uid = worlds.submit("hers", by=alice)
    worlds.await_phase("hers", "Running")

    alice.delete(f"{worlds.path}/pods/hers", gracePeriodSeconds=0)

    worlds.await_gone("hers")
    wait_until(lambda: not worlds.live(uid), PATIENCE_S, sandbox=worlds.sandbox)


@pytest.mark.attack(
    "smuggle options, lines, operators or control characters into Slurm's strings",
    "each field has a strict form",
)
@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("constraints", "a100 --nodelist=node-1"),
        ("constraints", "a100\nnode-1"),
        ("constraints", "$(id)"),
        ("partition", "slurm-bridge;other"),
        ("partition", "slurm-bridge other"),
        ("gres", "gpu:1 --exclusive"),
        ("gres", "gpu:1\n"),
        ("gres", "gpu:-1"),
        ("gres", "gpu:3,gpu:1"),
        ("gres", "gpu:2,gpu:a100:2"),
        ("licenses", "matlab:1\x00"),
        ("dependency", "afterok:1\nafterany:2"),
        ("dependency", "expand:1"),
        ("switches", "1@60 --x"),
        ("wckey", "a'b"),
        ("comment", "one line\nanother"),
        ("comment", "\u202egnirts"),
        ("job-name", "a\x1b[2J"),
        ("job-name", "a\u2028b"),
        ("timelimit", "1;2"),
        ("timelimit", "\uff19\uff19"),
        ("cpu-per-task", "1e999999999"),
        ("mem-per-node", "NaN"),
        ("user-id", "0"),
        ("group-id", "root"),
        ("signal", "KILL@1"),
    ],
)
def test_nothing_is_smuggled_into_slurms_strings(
    worlds: Worlds, alice: Api, field: str, text: str
) -> None:
    with pytest.raises(ApiError) as refused:
        worlds.submit("smuggler", annotations={f"{REQUEST_PREFIX}{field}": text}, by=alice)

    assert f"metadata.annotations[{REQUEST_PREFIX}{field}]" in refused.value.message
    assert worlds.pod("smuggler") is None


@pytest.mark.attack(
    "write annotations of hundreds of kilobytes",
    "length limits, short answers",
)
def test_a_huge_annotation_is_refused_in_few_words(worlds: Worlds, alice: Api) -> None:
    with pytest.raises(ApiError) as refused:
        worlds.submit("huge", annotations=asking(comment="x" * 200_000), by=alice)

    assert "slurmjob.slinky.slurm.net/comment" in refused.value.message
    assert len(refused.value.message) < 1000


@pytest.mark.attack(
    "use letters of other scripts",
    "they are data like any other",
)
def test_letters_of_the_world_reach_slurm_unharmed(worlds: Worlds, alice: Api) -> None:
    name = "訓練 λ=0.1 “naïve” ☃"
    uid = worlds.submit("worldly", annotations=asking(job_name=name, hold="true"), by=alice)
    job = worlds.await_live(uid)

    shown = worlds.sandbox.run("squeue", "--noheader", "-j", str(job.id), "-O", "Name:200")
    assert name == shown.strip()


@pytest.mark.attack(
    "use the webhook's account",
    "it has no rights",
)
def test_the_webhooks_account_may_do_nothing(worlds: Worlds, full_sandbox: Sandbox) -> None:
    with Api(chart.credentials(full_sandbox.instance, "webhook")) as account:
        for path in (f"{worlds.path}/pods", f"/api/v1/namespaces/{chart.NAMESPACE}/secrets"):
            assert "cannot list resource" in refusal(account, "GET", path)


@pytest.mark.attack(
    "use our accounts to read Secrets",
    "no such right, except four by name",
)
@pytest.mark.parametrize("component", ["extender", "controllers", "scheduler"])
def test_no_account_of_ours_reads_other_peoples_secrets(
    worlds: Worlds, full_sandbox: Sandbox, component: str
) -> None:
    with Api(chart.credentials(full_sandbox.instance, component)) as account:
        for namespace in (worlds.namespace, "kube-system", chart.NAMESPACE):
            path = f"/api/v1/namespaces/{namespace}/secrets"
            assert "cannot list resource" in refusal(account, "GET", path)


@pytest.mark.attack(
    "ask the extender to bind",
    "client certificate required",
)
def test_a_stranger_cannot_ask_the_extender(full_sandbox: Sandbox) -> None:
    bridge = full_sandbox.instance.bridge
    context = ssl.create_default_context(cafile=bridge / "serving-ca.crt")
    url = full_sandbox.instance.url("extender", "https")
    body = {"PodName": "p", "PodNamespace": "n", "PodUID": "u", "Node": "node-0"}

    for shown in (None, bridge / "webhook"):
        if shown is not None:
            context.load_cert_chain(shown / "tls.crt", shown / "tls.key")
        with (
            httpx.Client(verify=context, trust_env=False) as client,
            pytest.raises(httpx.TransportError),
        ):
            client.post(f"{url}/v1/bind", json=body)


@pytest.mark.attack(
    "wait until the token, a certificate or our processes are gone",
    "they renew; protection needs none of them",
)
def test_an_expired_token_is_replaced_without_a_restart_and_nothing_secret_is_said(
    worlds: Worlds, full_sandbox: Sandbox
) -> None:
    file = full_sandbox.token_file
    good = file.read_text()
    expired = full_sandbox.token(now=SystemClock().now() - timedelta(days=1000))

    def slurm_answers() -> bool:
        url = f"{full_sandbox.instance.url('extender-health')}/readyz"
        return "[-] slurm" not in httpx.get(url, trust_env=False).text

    file.write_text(expired)
    try:
        wait_until(lambda: not slurm_answers(), PATIENCE_S, sandbox=full_sandbox)
        uid = worlds.submit("patient", annotations=played(seconds=1))
    finally:
        file.write_text(good)

    assert "COMPLETED" == worlds.await_accounted(uid).state
    instance = full_sandbox.instance
    secrets = [
        good.strip(),
        expired,
        *(token.read_text() for token in instance.bridge.glob("*/token")),
    ]
    said = [instance.log(name).read_text() for name in (*SERVICES, "bridge-scheduler")]
    said += [
        json.dumps(full_sandbox.admin.get(f"{worlds.path}/{kind}")) for kind in ("events", "pods")
    ]
    for secret in secrets:
        signature = secret.rpartition(".")[2].strip()
        assert len(signature) > 20
        assert [] == [text for text in said if signature in text]
    assert [] == [text for text in said if re.search(r"PRIVATE KEY|eyJ[\w-]{20,}\.", text)]


@pytest.mark.attack(
    "wait until our processes are gone",
    "policies live in the API server",
)
def test_nobody_of_ours_is_needed_for_protection_nor_in_the_way(
    worlds: Worlds, elsewhere: Worlds, alice: Api, full_sandbox: Sandbox
) -> None:
    """With all our processes stopped."""
    worlds.submit("runs", by=alice)
    worlds.await_phase("runs", "Running")
    waiting = worlds.submit("waits", annotations=asking(hold="true"), by=alice)
    worlds.await_live(waiting)
    parts = (*SERVICES, "bridge-scheduler")
    for part in parts:
        full_sandbox.stop(part)
    try:
        # Other namespaces notice nothing.
        elsewhere.submit("ordinary")
        elsewhere.await_phase("ordinary", "Running")
        elsewhere.delete("ordinary")
        elsewhere.await_gone("ordinary")
        # Pods that are there live on, are edited and protected.
        runs = f"{worlds.path}/pods/runs"
        assert "" == refusal(alice, "PATCH", runs, {"metadata": {"labels": {"team": "a"}}})
        for change in (
            {"metadata": {"finalizers": None}},
            {"metadata": {"labels": {names.JOB_ID_LABEL: "1"}}},
            {"metadata": {"annotations": asking(account="root")}},
        ):
            assert "forbidden" in refusal(alice, "PATCH", runs, change)
        gate = {"spec": {"schedulingGates": None}}
        assert "forbidden" in refusal(alice, "PATCH", f"{worlds.path}/pods/waits", gate)
        # New ones are refused, in words; nobody gets round Slurm.
        with pytest.raises(ApiError, match=r"failed calling webhook .*slurm-bridge\.dev"):
            worlds.submit("new", by=alice)
        bound = {"nodeName": "node-0"}
        body = {"metadata": {"name": "bound"}, "spec": {"containers": [container()], **bound}}
        assert refusal(alice, "POST", f"{worlds.path}/pods", body)
        # Deletions are taken.
        assert "" == refusal(alice, "DELETE", f"{worlds.path}/pods/waits")
        assert "Running" == worlds.await_pod("runs", bool)["status"]["phase"]
    finally:
        for part in parts:
            full_sandbox.start(part, wait=False)

    worlds.await_gone("waits")
    assert not worlds.live(waiting)
    probe = {"metadata": {"name": "probe"}, "spec": {"containers": [container()]}}
    wait_until(
        lambda: not refusal(full_sandbox.admin, "POST", f"{worlds.path}/pods?dryRun=All", probe),
        PATIENCE_S,
        sandbox=full_sandbox,
    )
