"""The job that `explain` tells is the one that the extender submits: both are put into Slurm and compared field by field."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from typer.testing import CliRunner

from sandbox.client import Sandbox
from sandbox.options import Options
from sandbox.slurm_rest import API
from slurmcli import plugin
from slurmruntime.values import names
from tests.integration.worlds import Job, Worlds, container
from tests.servers import fresh_namespace, running_sandbox, wait_until

PATIENCE_S = 90.0
LATER = {f"{names.REQUEST_PREFIX}begin": "2040-01-01T00:00:00Z"}
"""Both jobs wait, so that only what was asked for can differ."""
CLASSES = {"urgent": {"qos": "high", "comment": "by class"}}
RULE = {
    "name": "everybody",
    "user": "kubernetes",
    "group": "kubernetes",
    "account": {"default": "kubernetes"},
    "qos": {"allowed": ["*"]},
}
_OPTIONS = Options(
    accounting=True,
    nodes=2,
    plain_nodes=0,
    settings=(
        f"placement.priority_classes={json.dumps(CLASSES)}",
        f"policy.rules={json.dumps([RULE])}",
    ),
)

OF_ONE_JOB = frozenset(
    {"JobId", "HetJobId", "HetJobIdSet", "JobName", "AdminComment", "SubmitTime", "EligibleTime"}
    | {"AccrueTime", "LastSchedEval", "Scheduler", "Priority", "Reason", "SubmitLine"}
    | {"SLUID", "AllocNode:Sid"}
)
"""What two jobs differ in that were asked for alike; a single pod's name is compared in the test of a pod."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with running_sandbox(_OPTIONS) as sandbox:
        sandbox.run("sacctmgr", "-i", "add", "qos", "high")
        sandbox.run("sacctmgr", "-i", "modify", "user", "kubernetes", "set", "qos+=high")
        body = {"metadata": {"name": "urgent"}, "value": 1000}
        sandbox.admin.create("/apis/scheduling.k8s.io/v1/priorityclasses", body)
        yield sandbox


@pytest.fixture
def worlds(sandbox: Sandbox) -> Iterator[Worlds]:
    with fresh_namespace(sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        worlds = Worlds(sandbox, name)
        yield worlds
        worlds.clear()


def pod(cpus: str = "2", **spec: Any) -> dict[str, Any]:
    whole = {"restartPolicy": "Never", "containers": [container(cpus, "1Gi")], **spec}
    return {"metadata": {"annotations": LATER}, "spec": whole}


def bare(name: str, cpus: str = "2", **spec: Any) -> dict[str, Any]:
    made = pod(cpus, **spec)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        **made,
        "metadata": {"name": name, **made["metadata"]},
    }


def a_job(annotations: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "annotations": {**(annotations or {})}},
        "spec": {"template": pod(), **spec},
    }


def of_group(name: str, cpus: str) -> dict[str, Any]:
    manifest = bare(name, cpus)
    manifest["metadata"]["labels"] = {names.POD_GROUP_LABEL: "ring"}
    manifest["metadata"]["annotations"] = {**LATER, names.POD_GROUP_SIZE_ANNOTATION: "2"}
    return manifest


MANIFESTS = {
    "plain pod": [bare("one", nodeSelector={"kubernetes.io/os": "linux"})],
    "priority class": [bare("classy", priorityClassName="urgent")],
    "job with a deadline": [a_job(activeDeadlineSeconds=601)],
    "asks by its owner": [a_job({f"{names.REQUEST_PREFIX}timelimit": "90"})],
    "gang": [
        a_job(
            {names.GANG_ANNOTATION: "true"}, parallelism=3, completions=3, completionMode="Indexed"
        )
    ],
    "gang of two sizes": [of_group("a", "2"), of_group("b", "1")],
}


@pytest.mark.parametrize("kind", MANIFESTS)
def test_the_explained_job_is_the_submitted_one(worlds: Worlds, kind: str, tmp_path: Path) -> None:
    manifests = MANIFESTS[kind]

    explained = _explained(worlds, manifests, tmp_path)
    for manifest in manifests:
        group = "api/v1" if manifest["kind"] == "Pod" else "apis/batch/v1"
        plural = f"{manifest['kind'].lower()}s"
        worlds.sandbox.admin.create(f"/{group}/namespaces/{worlds.namespace}/{plural}", manifest)
    wait_until(lambda: len(_jobs(worlds)) == len(explained), PATIENCE_S, sandbox=worlds.sandbox)

    submitted = [_shown(worlds, job.id) for job in _jobs(worlds)]
    by_hand = [_shown(worlds, job_id) for job_id in _submit(worlds, explained)]

    assert by_hand == submitted
    if kind == "priority class":
        assert {"high"} == {job["QOS"] for job in submitted}
    if kind == "job with a deadline":
        assert {"00:11:00"} == {job["TimeLimit"] for job in submitted}


def test_the_name_is_told_where_the_manifest_has_it(worlds: Worlds, tmp_path: Path) -> None:
    def name(kind: str) -> object:
        return _explained(worlds, MANIFESTS[kind], tmp_path)[0].get("name")

    assert "one" == name("plain pod")
    assert "train" == name("gang")
    assert name("job with a deadline") is None


def _explained(
    worlds: Worlds, manifests: list[dict[str, Any]], folder: Path
) -> list[dict[str, Any]]:
    """The components of the job that the first template is told to become."""
    file = folder / "manifest.yaml"
    file.write_text(yaml.safe_dump_all(manifests))
    arguments = ("explain", str(file), "-n", worlds.namespace, "-o", "json")
    done = CliRunner().invoke(plugin.app(), arguments, env=worlds.sandbox.env)
    assert 0 == done.exit_code, done.output
    first, *others = json.loads(done.stdout)
    assert all(other["job"] == first["job"] for other in others)
    return [first["job"], *first["components"]]


def _submit(worlds: Worlds, components: list[dict[str, Any]]) -> list[int]:
    """Submit it as the extender does, but for the identity; returns the components' ids."""
    env = worlds.sandbox.env
    ours = {"flags": ["EXTERNAL_JOB"], "current_working_directory": "/"}
    whole = [{"name": "by-hand", **component, **ours} for component in components]
    body = {"job": whole[0]} if len(whole) == 1 else {"jobs": whole}
    answer = httpx.post(
        f"{env['SLURMRESTD_URL']}/slurm/{API}/job/submit",
        headers={"X-SLURM-USER-TOKEN": env["SLURM_JWT"]},
        json=body,
        trust_env=False,
        timeout=PATIENCE_S,
    ).json()
    assert [] == answer["errors"], answer
    return [answer["job_id"] + offset for offset in range(len(whole))]


def _jobs(worlds: Worlds) -> list[Job]:
    """This namespace's placeholders, each component by itself."""
    ours = [job for job in worlds.queue() if job.namespace == worlds.namespace and job.is_live]
    return sorted(ours, key=lambda job: job.id)


def _shown(worlds: Worlds, job_id: int) -> dict[str, str]:
    """What scontrol shows of a job, without what is different for every job."""
    words = worlds.scontrol("show", "job", str(job_id)).split()
    shown = dict(word.split("=", 1) for word in words if "=" in word)
    return {key: value for key, value in shown.items() if key not in OF_ONE_JOB}
