"""A real API server serves SlurmJobs by the definition that is made from their types."""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from deploy.job_definition import NAME, definition
from deploy.sylabs_definitions import definitions
from sandbox.api import Api, ApiError
from sandbox.client import Sandbox
from slurmjobs.objects import slurmjob
from slurmjobs.objects.slurmjob import API_VERSION, KIND, PLURAL
from slurmjobs.sylabs.job import KINDS
from tests.servers import wait_until
from tests.slurmjobs.sylabs.published import PUBLISHED

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCRIPT = "#!/bin/sh\n#SBATCH --time=5\nsrun hostname\n"
Manifest = dict[str, Any]
Paths = Callable[..., str]


@pytest.fixture(scope="module")
def jobs(control_plane: Sandbox) -> Iterator[Paths]:
    """Paths of SlurmJobs, which are served now."""
    admin = control_plane.admin
    admin.create(DEFINITIONS, definition())
    wait_until(lambda: _is_served(admin, NAME), 30, sandbox=control_plane)
    yield _path
    admin.delete(f"{DEFINITIONS}/{NAME}")


@contextmanager
def sylabs_served(control_plane: Sandbox) -> Iterator[None]:
    """The definitions of Sylabs' kinds, beside ours."""
    admin, made = control_plane.admin, definitions()
    for each in made:
        admin.create(DEFINITIONS, each)
    try:
        names = [each["metadata"]["name"] for each in made]
        wait_until(lambda: all(map(_is_served, repeat(admin), names)), 30, sandbox=control_plane)
        yield
    finally:
        for each in made:
            admin.delete(f"{DEFINITIONS}/{each['metadata']['name']}")


def _is_served(admin: Api, name: str) -> bool:
    conditions = admin.get(f"{DEFINITIONS}/{name}")["status"].get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def _path(namespace: str, name: str = "") -> str:
    path = f"/apis/{API_VERSION}/namespaces/{namespace}/{PLURAL}"
    return f"{path}/{name}" if name else path


def job(name: str = "train", **spec: Any) -> Manifest:
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name},
        "spec": {"script": SCRIPT, **spec},
    }


OUTPUT = {"claimName": "scratch", "clusterPath": "/scratch"}


def result(source: str, path: str = "") -> dict[str, Any]:
    return {"from": source, "to": {"claimName": "kept", "path": path}}


def test_an_object_is_served_as_the_types_read_it(
    control_plane: Sandbox, namespace: str, jobs: Paths
) -> None:
    full = job(
        args=["small"],
        options={"partition": "gpu", "gpusPerNode": 4, "hold": True, "array": "0-9%3"},
        env=[{"name": "SEED", "value": "7"}],
        dependsOn=[{"slurmJob": "prepare"}, {"pod": "a"}, {"jobId": 4711, "condition": "ended"}],
        activeDeadlineSeconds=3600,
        ttlSecondsAfterFinished=60,
        managedBy=slurmjob.CONTROLLER,
        output=OUTPUT,
        results=[{"from": "out/%j", "to": {"claimName": "kept", "path": "runs"}}],
    )
    stored = control_plane.admin.create(jobs(namespace), full)
    read = slurmjob.OURS.read(json.dumps(stored).encode())

    assert full["spec"]["options"] == read.spec.options
    assert "succeeded" == stored["spec"]["dependsOn"][0]["condition"]
    assert stored["spec"]["suspend"] is False
    assert "7" == read.spec.env[0].value
    assert (3600, 60) == (read.spec.active_deadline_seconds, read.spec.ttl_seconds_after_finished)
    assert ("out/%j", "runs") == (read.spec.results[0].source, read.spec.results[0].to.path)
    assert read.is_ours
    assert read.metadata.creation_timestamp is not None
    assert 1 == read.metadata.generation


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"script": "hostname"}, "spec.script: Invalid value"),
        ({"script": ""}, "spec.script"),
        ({"script": "#!/bin/sh\r\n"}, "DOS line break"),
        ({"script": "#!/bin/sh\0"}, "NUL character"),
        ({"script": "\ufeff#!/bin/sh\n"}, "byte-order mark"),
        ({"script": "#!/bin/sh\n" + "x" * 2**20}, "spec.script: Too long"),
        ({"script": None}, "expected either script or scriptFrom"),
        ({"scriptFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}, "expected either script"),
        ({"script": None, "scriptFrom": {"configMapKeyRef": {"name": "A", "key": "b"}}}, "name"),
        ({"options": {"hold": "yes"}}, "spec.options.hold"),
        ({"options": {"time": True}}, "spec.options.time"),
        ({"options": {"partition": "p" * 20_000}}, "spec.options.partition: Too long"),
        ({"options": {"uid": 0}}, 'unknown field "spec.options.uid"'),
        ({"env": [{"name": "A"}, {"name": "A"}]}, "Duplicate value"),
        ({"env": [{"name": "A=B"}]}, "spec.env[0].name"),
        ({"dependsOn": [{}]}, "expected one of slurmJob, pod and jobId"),
        ({"dependsOn": [{"jobId": 1, "slurmJob": "a"}]}, "expected one of slurmJob, pod"),
        ({"dependsOn": [{"pod": "b", "slurmJob": "a"}]}, "expected one of slurmJob, pod"),
        ({"dependsOn": [{"jobId": 0}]}, "spec.dependsOn[0].jobId"),
        ({"dependsOn": [{"jobId": 1, "condition": "lost"}]}, "Unsupported value"),
        ({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds"),
        ({"ttlSecondsAfterFinished": -1}, "spec.ttlSecondsAfterFinished"),
        ({"managedBy": "somebody"}, "spec.managedBy"),
        ({"args": ["a"] * 300}, "spec.args: Too many"),
        ({"comand": "x"}, 'unknown field "spec.comand"'),
        ({"results": [result("a")]}, "results need output"),
        ({"output": OUTPUT, "results": [result("../a")]}, "a path may not contain `..`"),
        ({"output": OUTPUT, "results": [result("a", "b/..")]}, "a path may not contain `..`"),
        ({"output": OUTPUT, "results": [result("a", "/b")]}, "spec.results[0].to.path"),
        ({"output": OUTPUT, "results": [result("a" * 1025)]}, "spec.results[0].from: Too long"),
        ({"output": OUTPUT, "results": [{"from": "a"}]}, "spec.results[0].to: Required"),
        ({"output": OUTPUT, "results": [result("a")] * 17}, "spec.results: Too many"),
    ],
)
def test_what_the_api_server_refuses_by_itself(
    control_plane: Sandbox, namespace: str, jobs: Paths, spec: Mapping[str, Any], said: str
) -> None:
    body = job(**spec)
    body["spec"] = {key: value for key, value in body["spec"].items() if value is not None}
    strict = {"dryRun": "All", "fieldValidation": "Strict"}
    with pytest.raises(ApiError) as refused:
        control_plane.admin.request("POST", jobs(namespace), body, params=strict)

    assert said in refused.value.message


@pytest.mark.parametrize(
    "change",
    [
        {"script": "#!/bin/sh\nrm\n"},
        {"script": None, "scriptFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}},
        {"args": ["large"]},
        {"options": {"partition": "gpu"}},
        {"env": [{"name": "SEED", "value": "8"}]},
        {"dependsOn": [{"jobId": 1}]},
        {"managedBy": "example.org/other"},
        {"output": OUTPUT, "results": [result("a")]},
    ],
    ids="+".join,
)
def test_what_slurm_was_given_never_changes(
    control_plane: Sandbox, namespace: str, jobs: Paths, change: Mapping[str, Any]
) -> None:
    control_plane.admin.create(jobs(namespace), job(env=[{"name": "SEED", "value": "7"}]))
    with pytest.raises(ApiError, match="create another SlurmJob"):
        control_plane.admin.patch(jobs(namespace, "train"), {"spec": dict(change)})
    control_plane.admin.patch(
        jobs(namespace, "train"), {"spec": {"suspend": True, "ttlSecondsAfterFinished": 5}}
    )


def test_people_see_the_columns_they_expect(
    control_plane: Sandbox, namespace: str, jobs: Paths
) -> None:
    control_plane.admin.create(jobs(namespace), job())
    status = {
        "phase": "Running",
        "state": "RUNNING",
        "jobId": 4711,
        "nodes": "gpu[1-2]",
        "reason": "None",
        "conditions": [
            {
                "type": "Submitted",
                "status": "True",
                "reason": "Accepted",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ],
    }
    control_plane.admin.patch(f"{jobs(namespace, 'train')}/status", {"status": status})
    shown = control_plane.kubectl("get", "sj", "--namespace", namespace)
    heads, row = (line.split() for line in shown.splitlines())

    assert ["NAME", "STATE", "JOBID", "NODES", "REASON", "AGE"] == heads
    assert ["train", "RUNNING", "4711", "gpu[1-2]", "None"] == row[:5]
    assert max(map(len, shown.splitlines())) <= 100
    control_plane.kubectl(
        *("wait", "sj/train", "--namespace", namespace, "--timeout=5s"),
        "--for=condition=Submitted",
    )


def test_slurmjobs_and_sj_mean_ours_whether_or_not_sylabs_kinds_are_installed(
    control_plane: Sandbox, namespace: str, jobs: Paths, tmp_path: Path
) -> None:
    admin = control_plane.admin
    admin.create(jobs(namespace), job())

    def shown(name: str) -> str:
        home = f"--cache-dir={tmp_path}/{uuid.uuid4().hex}"  # what is served is asked each time
        printed = control_plane.kubectl(
            "get", name, "--namespace", namespace, "--output=name", home
        )
        return printed.strip()

    ours = f"slurmjob.{slurmjob.GROUP}/train"
    assert {ours} == {shown(name) for name in ("slurmjobs", "slurmjob", "sj")}
    with sylabs_served(control_plane):
        for published in PUBLISHED.values():
            manifest = published.manifest
            if published.fault and not published.only_reviewed:
                with pytest.raises(ApiError, match=published.fault):
                    _create(admin, namespace, manifest)
            else:
                _create(admin, namespace, manifest)
        assert {ours} == {shown(name) for name in ("slurmjobs", "slurmjob", "sj")}
        assert "slurmjob.slurm.sylabs.io/slurm-batch-example" in shown("slurmjobs.slurm.sylabs.io")
        assert "slurmjob.wlm.sylabs.io/cow" in shown("slurmjobs.wlm.sylabs.io")
        assert "wlmjob.wlm.sylabs.io/lolcow" == shown("wlmjobs")
        _nothing_changes(admin, namespace)
    assert {ours} == {shown(name) for name in ("slurmjobs", "slurmjob", "sj")}


def _create(admin: Api, namespace: str, manifest: Manifest) -> None:
    """Create one as `kubectl create` does, which refuses unknown fields; several have one name."""
    kind = next(
        each
        for each in KINDS
        if (each.api_version, each.kind) == (manifest["apiVersion"], manifest["kind"])
    )
    path = f"/apis/{kind.api_version}/namespaces/{namespace}/{kind.plural}"
    with suppress(ApiError):
        admin.delete(f"{path}/{manifest['metadata']['name']}")
    admin.request("POST", path, manifest, params={"fieldValidation": "Strict"})


def _nothing_changes(admin: Api, namespace: str) -> None:
    where = f"namespaces/{namespace}"
    old = f"/apis/slurm.sylabs.io/v1alpha1/{where}/slurmjobs/slurm-batch-example"
    image = f"/apis/wlm.sylabs.io/v1alpha1/{where}/wlmjobs/lolcow"
    for path, change in (
        (old, {"batch": "#!/bin/sh\n"}),
        (old, {"resources": {"slurm.sylabs.io/cpu": 2}}),
        (image, {"image": "docker://other"}),
        (image, {"options": {"allowUnsigned": False}}),
    ):
        with pytest.raises(ApiError, match="cannot be changed after creation"):
            admin.patch(path, {"spec": change})
