"""SlurmJobs at the API server, with the chart's definition, webhooks, policy and roles, and the webhook itself."""

import json
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from bridge.settings import policy_file
from bridge.settings.schema import Settings
from sandbox.api import ApiError
from sandbox.client import Sandbox
from slurmcli import plugin
from slurmjobs.objects import slurmjob
from slurmjobs.sylabs.job import KINDS, SylabsKind
from slurmruntime.values import names
from tests import pages
from tests.chart.policed import OUTSIDE, Cluster, policed, refusal
from tests.chart.rendering import Manifest, render
from tests.make.certificates import Authority
from tests.servers import wait_until
from tests.webhook.running import webhook_process

SCRIPT = "#!/bin/sh\n#SBATCH --time=5\nsrun hostname\n"
RULES = [
    {"name": "pods", "match": {"users": ["carol"]}, "user": "{user}"},
    {"name": "people", "match": {"kinds": ["Pod", "SlurmJob"]}, "user": "{user}"},
]
SERVED = {
    "config": {
        "slurm_jobs": {"enabled": True},
        "sylabs": {"enabled": True},
        "policy": {"rules": RULES},
    }
}


@pytest.fixture(scope="module")
def cluster(
    control_plane: Sandbox, helm: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    authority, folder = Authority(), tmp_path_factory.mktemp("webhook")
    cert_file, key_file = authority.issue("webhook").write(folder, "webhook")
    settings = {
        "policy": SERVED["config"]["policy"],
        "slurm_jobs": {"enabled": True},
        "sylabs": {"enabled": True},
        "slurm": {},
    }
    with webhook_process(folder, cert_file=cert_file, key_file=key_file, **settings) as webhook:
        values = {
            **OUTSIDE,
            **SERVED,
            "webhook": {"url": webhook.url},
            "tls": {"mode": "secret", "caBundle": authority.certificate.decode()},
        }
        with policed(
            control_plane, helm, lambda cluster: [*_served(helm, cluster, values)], values
        ) as cluster:
            wait_until(lambda: not refused(cluster, {}), 30, sandbox=control_plane)
            yield cluster


def _served(helm: Path, cluster: Cluster, values: dict[str, Any]) -> Iterator[Manifest]:
    """The definition, the webhooks for SlurmJobs alone, and what people may do."""
    rendered = render(helm, values, namespace=cluster.ours)
    yield from rendered.of_kind("CustomResourceDefinition").values()
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        for manifest in rendered.of_kind(kind).values():
            hooks = [hook for hook in manifest["webhooks"] if "slurmjobs" in hook["name"]]
            yield {**manifest, "webhooks": hooks}
    rule = {
        "apiGroups": [slurmjob.GROUP, *(kind.group for kind in KINDS)],
        "resources": ["slurmjobs", "slurmjobs/status", "wlmjobs", "wlmjobs/status"],
        "verbs": ["*"],
    }
    rbac = "rbac.authorization.k8s.io"
    meta = {"name": f"slurmjobs-{cluster.bridged}"}
    yield {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": meta, "rules": [rule]}
    subject = {"apiGroup": rbac, "kind": "Group", "name": "system:authenticated"}
    yield {
        "apiVersion": f"{rbac}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": meta,
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": meta["name"]},
        "subjects": [subject],
    }


def jobs(namespace: str, name: str = "", subresource: str = "") -> str:
    parts = (
        f"/apis/{slurmjob.API_VERSION}/namespaces",
        namespace,
        slurmjob.PLURAL,
        name,
        subresource,
    )
    return "/".join(part for part in parts if part)


def job(spec: dict[str, Any], **metadata: Any) -> Manifest:
    return {
        "apiVersion": slurmjob.API_VERSION,
        "kind": slurmjob.KIND,
        "metadata": {"name": f"job-{uuid.uuid4().hex[:6]}", **metadata},
        "spec": {"script": SCRIPT, **spec},
    }


def refused(cluster: Cluster, spec: dict[str, Any], *, by: str = "alice", where: str = "") -> str:
    """What the API server says against a SlurmJob; "" if nothing."""
    path = jobs(where or cluster.bridged)
    return refusal(cluster.user(by), "POST", path, job(spec))


@pytest.fixture
def alices(cluster: Cluster) -> Iterator[Manifest]:
    """A SlurmJob of hers, whose author tried to be somebody else."""
    forged = {
        names.REQUESTER_ANNOTATION: "bob",
        names.RULES_ANNOTATION: "all",
        names.OWNER_ANNOTATION: "1",
    }
    body = job({}, annotations=forged, finalizers=["slurm-bridge.dev/slurm-job"])
    stored: Manifest = cluster.user().create(jobs(cluster.bridged), body)
    yield stored
    free = {"metadata": {"finalizers": None}}
    cluster.program("controllers").patch(jobs(cluster.bridged, _name(stored)), free)


@pytest.mark.attack(
    "create a SlurmJob with another's name in `slurm-bridge.dev/requester`",
    "the webhook overwrites it, and policy `slurmjobs` compares it with the requester",
)
def test_nobody_creates_a_slurm_job_in_anothers_name(alices: Manifest) -> None:
    annotations = alices["metadata"]["annotations"]

    assert "alice" == annotations[names.REQUESTER_ANNOTATION]
    assert "people" == annotations[names.RULES_ANNOTATION]
    assert not annotations[names.OWNER_ANNOTATION]


@pytest.mark.attack(
    "change later whose SlurmJob it is, as cluster administrator",
    "policy `slurmjobs` lets nobody but slurm-bridge change its annotations",
)
@pytest.mark.parametrize(
    "annotation", [names.REQUESTER_ANNOTATION, names.RULES_ANNOTATION, "slurm-bridge.dev/new"]
)
def test_whose_slurm_job_it_is_never_changes(
    cluster: Cluster, alices: Manifest, annotation: str
) -> None:
    path = jobs(cluster.bridged, _name(alices))
    change = {"metadata": {"annotations": {annotation: "bob"}}}

    assert "it stays theirs" in refusal(cluster.admin, "PATCH", path, change)
    assert refusal(cluster.admin, "PATCH", f"{path}/status", change)
    own = {"metadata": {"annotations": {"example.test/note": "x"}}}
    assert not refusal(cluster.user(), "PATCH", jobs(cluster.bridged, _name(alices)), own)


@pytest.mark.attack(
    "write the status of a SlurmJob", "policy `slurmjobs` lets only slurm-bridge write it"
)
def test_only_slurm_bridge_says_what_became_of_a_slurm_job(
    cluster: Cluster, alices: Manifest
) -> None:
    path = jobs(cluster.bridged, _name(alices), "status")
    change = {"status": {"phase": "Succeeded", "jobId": 1}}

    for caller in (cluster.user(), cluster.admin):
        assert "only slurm-bridge says what became" in refusal(caller, "PATCH", path, change)
    assert not refusal(cluster.program("controllers"), "PATCH", path, change)


@pytest.mark.attack(
    "remove the finalizer of a SlurmJob, so that its Slurm job is left behind",
    "policy `slurmjobs` lets only slurm-bridge remove it",
)
def test_nobody_lets_a_slurm_job_go_while_its_job_may_run(
    cluster: Cluster, alices: Manifest
) -> None:
    path = jobs(cluster.bridged, _name(alices))
    change = {"metadata": {"finalizers": None}}

    assert "a Slurm job would be left behind" in refusal(cluster.admin, "PATCH", path, change)
    assert not refusal(cluster.program("controllers"), "PATCH", path, change)


@pytest.mark.attack(
    "create a SlurmJob in a namespace that is not bridged", "policy `slurmjobs` refuses it"
)
def test_only_bridged_namespaces_take_slurm_jobs(cluster: Cluster) -> None:
    assert "takes no SlurmJobs" in refused(cluster, {}, where=cluster.other)


@pytest.mark.attack("run a SlurmJob as root", "no rule results in root, and --uid is refused")
def test_nobody_becomes_root(cluster: Cluster) -> None:
    assert "makes 'root' the Slurm user" in refused(cluster, {}, by="root")
    as_root = SCRIPT.replace("--time=5", "--uid=0")
    assert "line 2: --uid is not supported" in refused(cluster, {"script": as_root})


@pytest.mark.attack(
    "have SlurmJobs where the rule is for pods", "a rule is for SlurmJobs only if it says so"
)
def test_a_rule_for_pods_is_not_for_slurm_jobs(cluster: Cluster) -> None:
    """Carol's first rule is for pods, so the next one that matches applies."""
    stored = cluster.user("carol").create(jobs(cluster.bridged), job({}))

    assert "people" == stored["metadata"]["annotations"][names.RULES_ANNOTATION]


def test_a_user_sees_every_fault_with_its_line(cluster: Cluster) -> None:
    script = "#!/bin/sh\n#SBATCH --mem=4Q\n#SBATCH --account=physics --reboot\nx\n#SBATCH -n4\n"
    body = json.dumps(job({"script": script, "options": {"time": "soon"}}))
    done = subprocess.run(
        [
            str(cluster.sandbox.instance.bin / "kubectl"),
            f"--kubeconfig={cluster.sandbox.user_kubeconfig('alice')}",
            f"--namespace={cluster.bridged}",
            *("create", "--filename=-"),
        ],
        input=body,
        capture_output=True,
        text=True,
        check=False,
    )

    assert 1 == done.returncode
    for fault in (
        "spec.script: line 2: --mem=4Q: it is not an amount of memory",
        "spec.script: line 3: --reboot is not allowed",
        "spec.script: line 3: refused: users may not set it (policy rule people), found 'physics'",
        "spec.options.time: --time=soon: it is not a duration",
    ):
        assert any(fault in line for line in done.stderr.splitlines()), done.stderr
    assert "Warning: spec.script: line 5: this directive comes after" in done.stderr


def test_the_api_server_says_all_that_is_wrong_with_the_form(cluster: Cluster) -> None:
    """The webhook that mutates comes first, and leaves that to it."""
    said = refused(cluster, {"script": 5, "suspend": "yes", "args": "small"})

    for field in ("spec.script", "spec.suspend", "spec.args"):
        assert field in said


def test_a_script_becomes_a_slurm_job(cluster: Cluster, tmp_path: Path) -> None:
    """`kubectl slurm submit`, with its arguments, options and environment."""
    file = tmp_path / "Train_1.sh"
    file.write_text(SCRIPT)
    where = (
        *("--kubeconfig", str(cluster.sandbox.user_kubeconfig("alice"))),
        *("--namespace", cluster.bridged),
    )
    more = ("--set", "nodes=2", "--set", "hold", "--set", "exclusive", "--env", "SEED=7")
    done = CliRunner().invoke(
        plugin.app(), ["submit", str(file), *where, *more, "-o", "json", "--", "small", "-x"]
    )

    assert 0 == done.exit_code, done.output
    stored = json.loads(done.stdout)
    assert stored["metadata"]["name"].startswith("train-1-")
    assert {
        "script": SCRIPT,
        "args": ["small", "-x"],
        "options": {"nodes": "2", "hold": True, "exclusive": ""},
        "env": [{"name": "SEED", "value": "7"}],
        "suspend": False,
    } == stored["spec"]

    named = CliRunner().invoke(plugin.app(), ["submit", str(file), *where, "--name", "mine"])
    assert "slurmjob.slurm-bridge.dev/mine created" in named.stdout
    beyond = ["submit", str(file), *where, "--set", "account=physics"]
    refused_by_policy = CliRunner().invoke(plugin.app(), beyond)
    assert 2 == refused_by_policy.exit_code
    assert "spec.options.account: refused: users may not set it" in refused_by_policy.stderr


OLD = [pytest.param(kind, id=f"{kind.kind}.{kind.group}") for kind in KINDS]


def old(kind: SylabsKind, **spec: Any) -> Manifest:
    named = {"image": "library://sylabsed/examples/lolcow"}
    own = named if kind.kind == "WlmJob" else {"batch": SCRIPT}
    forged = {names.REQUESTER_ANNOTATION: "bob", names.RULES_ANNOTATION: "all"}
    metadata = {"name": f"old-{uuid.uuid4().hex[:6]}", "annotations": forged}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": metadata,
        "spec": {**own, **spec},
    }


def old_path(kind: SylabsKind, namespace: str) -> str:
    return f"/apis/{kind.api_version}/namespaces/{namespace}/{kind.plural}"


@pytest.mark.attack(
    "use a kind of Sylabs' to create a SlurmJob in another's name, change it, or write its status",
    "the webhook and policy `slurmjobs` are for these kinds too",
)
@pytest.mark.parametrize("kind", OLD)
def test_kinds_of_sylabs_have_the_same_door(cluster: Cluster, kind: SylabsKind) -> None:
    path, alice = old_path(kind, cluster.bridged), cluster.user()
    assert "takes no SlurmJobs" in refusal(alice, "POST", old_path(kind, cluster.other), old(kind))
    stored = alice.create(path, old(kind))
    own = f"{path}/{_name(stored)}"

    annotations = stored["metadata"]["annotations"]
    assert ("alice", "people") == (
        annotations[names.REQUESTER_ANNOTATION],
        annotations[names.RULES_ANNOTATION],
    )
    status = {"status": {"phase": "Succeeded", "status": "Succeeded"}}
    for caller in (alice, cluster.admin):
        said = refusal(caller, "PATCH", f"{own}/status", status)
        assert "only slurm-bridge says what became" in said
        change = {"metadata": {"annotations": {names.REQUESTER_ANNOTATION: "bob"}}}
        assert "it stays theirs" in refusal(caller, "PATCH", own, change)
        for spec in ({"nodeSelector": {"a": 1.5}}, {"image": "x"}, {"batch": "#!/bin/sh\n"}):
            if spec.keys() & {*stored["spec"], "nodeSelector"}:
                said = refusal(caller, "PATCH", own, {"spec": spec})
                assert "cannot be changed after creation" in said
    assert not refusal(cluster.program("controllers"), "PATCH", f"{own}/status", status)


def test_an_old_manifest_is_told_every_fault_with_its_own_fields(cluster: Cluster) -> None:
    kind = KINDS[0]
    bad = old(
        kind,
        batch="#!/bin/sh\n#SBATCH --mem=4Q\n#SBATCH --account=physics\n",
        nodeSelector={"a": True, "slurm.sylabs.io/cuda": 10},
        ssh={"user": "vagrant", "key": {"secretKeyRef": {"name": "slurm", "key": "key"}}},
    )
    said = refusal(cluster.user(), "POST", old_path(kind, cluster.bridged), bad)

    for fault in (
        "spec.ssh: slurm-bridge uses no ssh and reads no key",
        "spec.nodeSelector[a]: expected text or a number",
        "spec.batch: line 2: --mem=4Q: it is not an amount of memory",
        "spec.batch: line 3: refused: users may not set it",
    ):
        assert fault in said


def test_what_the_page_shows_is_accepted(cluster: Cluster) -> None:
    shown = [yaml.safe_load(b.text) for b in pages.blocks("slurmjob.md") if b.language == "yaml"]
    example, output, results, policy, role, _workflow = shown
    followed = {**example, "metadata": {"name": "followed"}}
    followed["spec"] = {**example["spec"], "output": output["spec"]["output"]}
    copied = {**example, "metadata": {"name": "copied"}}
    copied["spec"] = {**results["spec"], "script": example["spec"]["script"]}

    assert not refusal(cluster.user(), "POST", jobs(cluster.bridged), example)
    assert not refusal(cluster.user(), "POST", jobs(cluster.bridged), followed)
    assert not refusal(cluster.user(), "POST", jobs(cluster.bridged), copied)
    (rule,) = policy_file.compiled(Settings.model_validate(policy)).rules
    assert {"Pod", "SlurmJob"} == rule.kinds
    path = f"/apis/{role['apiVersion']}/namespaces/{cluster.bridged}/roles"
    role["metadata"]["namespace"] = cluster.bridged
    assert not refusal(cluster.admin, "POST", path, role)


def test_a_script_as_large_as_the_definition_allows_is_reviewed(cluster: Cluster) -> None:
    assert not refused(cluster, {"script": SCRIPT + "\N{GREEK SMALL LETTER ALPHA}\n" * 2**18})
    with pytest.raises(ApiError):
        cluster.user().create(jobs(cluster.bridged), job({"script": SCRIPT + "x" * 5_000_000}))


def _name(stored: Manifest) -> str:
    return str(stored["metadata"]["name"])


@pytest.mark.attack(
    "with a stolen token of the controllers, say that a SlurmJob that waits is another user's, to have it submitted as that one",
    "policy `slurmjobs`: our controllers write finalizer and status, and never whose it is",
)
def test_not_even_our_controllers_change_whose_it_is(cluster: Cluster, alices: Manifest) -> None:
    by, path = cluster.program("controllers"), jobs(cluster.bridged, _name(alices))

    for key in (names.REQUESTER_ANNOTATION, names.RULES_ANNOTATION, names.OWNER_ANNOTATION):
        change = {"metadata": {"annotations": {key: "bob"}}}
        assert "it stays theirs" in refusal(by, "PATCH", path, change)
    assert "" == refusal(by, "PATCH", path, {"metadata": {"finalizers": None}})
    status = {"status": {"phase": "Succeeded", "jobId": 1}}
    assert "" == refusal(by, "PATCH", f"{path}/status", status)
