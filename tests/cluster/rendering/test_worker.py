"""A worker's pod: what slurmd is told, what a user may change, and what is refused."""

import shlex
from typing import Any

import msgspec

from bridge.crd.metadata import ObjectMetadata
from bridge.domain.faults import Refused
from cluster.objects.nodeset import NodeSetObject, NodeSetSpec
from cluster.rendering.worker import WorkerSite, worker_pod

SITE = WorkerSite(
    controller_host="slurm-controller.lab",
    key_secret="slurm-auth-slurm",  # noqa: S106  # its name
    workers_service="slurm-workers-slurm",
    search_domain="slurm-workers-slurm.lab.svc.cluster.local",
    image="example.test/slurmd:26.05",
)


def node_set(**spec: Any) -> NodeSetObject:
    body = {"controllerRef": {"name": "slurm"}, **spec}
    return NodeSetObject(
        metadata=ObjectMetadata(name="gpu", namespace="lab", uid="u"),
        spec=msgspec.convert(body, NodeSetSpec),
    )


def made(number: str = "3", **spec: Any) -> dict[str, Any]:
    found = worker_pod(node_set(**spec), number, SITE)
    assert not isinstance(found, Refused), found
    body: dict[str, Any] = found["spec"]
    return body


def slurmd(**spec: Any) -> dict[str, Any]:
    found: dict[str, Any] = made(**spec)["containers"][0]
    return found


def test_slurmd_registers_itself_under_the_pods_host_name() -> None:
    spec = made("007")

    assert ("gpu-007", "slurm-workers-slurm") == (spec["hostname"], spec["subdomain"])
    assert "node007" == made("007", template={"spec": {"hostname": "node"}})["hostname"]
    assert [
        "-Z",
        "--conf-server",
        "slurm-controller.lab:6817",
        "--conf",
        "Features=gpu",
    ] == slurmd()["args"]


def test_what_it_says_of_its_node_is_one_argument() -> None:
    args = slurmd(extraConf="Gres=gpu:4 Feature=fast,big Weight=10")["args"]

    said = shlex.split(args[-1])
    assert ["Features=gpu,fast,big Gres=gpu:4 Weight=10"] == said


def test_two_workers_share_no_node_unless_somebody_wants_it() -> None:
    assert "podAntiAffinity" in made()["affinity"]
    assert "affinity" not in made(oversubscribeNode=True)


def test_its_part_of_the_pod_is_laid_over_ours() -> None:
    container = slurmd(
        slurmd={
            "name": "other",
            "image": "mine",
            "resources": {"limits": {"cpu": "4", "memory": "8Gi"}},
            "securityContext": {"privileged": False},
        }
    )
    spec = made(
        template={"metadata": {"labels": {"a": "b"}}, "spec": {"nodeSelector": {"gpu": "yes"}}}
    )

    assert ("slurmd", "mine", False) == (
        container["name"],
        container["image"],
        container["securityContext"]["privileged"],
    )
    assert {"gpu": "yes"} == spec["nodeSelector"]
    assert not spec["automountServiceAccountToken"]


def test_what_would_make_it_another_node_is_refused_at_once() -> None:
    found = worker_pod(
        node_set(template={"spec": {"restartPolicy": "Never", "subdomain": "x"}}), "0", SITE
    )

    assert isinstance(found, Refused)
    assert ["spec.template.spec.restartPolicy", "spec.template.spec.subdomain"] == [
        each.path for each in found.faults
    ]
