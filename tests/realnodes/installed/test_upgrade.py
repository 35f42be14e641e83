"""From our first release, in the namespace that was its default, to this one: by the steps of docs/migration.md.

Pods wait, run and end meanwhile, on real kubelets; in between there is no bridge at all.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.api import ApiError
from sandbox.client import Sandbox
from slurmruntime.values import names
from tests import pages
from tests.pages import Reader
from tests.realnodes.containers import Containers
from tests.realnodes.installed import older, release, surroundings
from tests.realnodes.installed.release import FOR_SLURM, READY_S, Installed
from tests.servers import fresh_namespace, wait_until

pytestmark = pytest.mark.real_all

PAGE = "migration.md"
LIMITS = {"cpu": "500m", "memory": "64Mi"}
FLAGS = "/var/lib/kubelet"
"""A folder of the node; a file in it tells a pod to go on."""


@dataclass(frozen=True, slots=True)
class Move:
    """A release of ours in its old namespace, and who moves it."""

    old: Installed
    new: Installed
    reader: Reader
    values: Path

    def tell(self, pod: str) -> None:
        """Let a pod of `until_told` go on."""
        self.old.sandbox.on_node(FOR_SLURM, "touch", f"{FLAGS}/{pod}")


@pytest.fixture(scope="module")
def move(bare: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Move]:
    folder = tmp_path_factory.mktemp("older")
    tree = older.checkout(folder / "tree")
    bare.load_image(older.image(tree, folder))
    helm = surroundings.helm()
    old, new = Installed(bare, helm, older.NAMESPACE), Installed(bare, helm)
    reader = pages.reader(folder / "reader", bare.env, helm.parent)
    values = reader.folder / "my-values.yaml"
    with release.ground(bare) as address:
        wanted = release.values(bare, address)
        del wanted["config"]["slurm"]["insecure"]  # it knew no such thing
        values.write_text(json.dumps({**wanted, "image": {"tag": older.COMMIT}}))
        old.install(tree / "deploy" / "chart", values)
        yield Move(old, new, reader, values)
        for installed in (new, old):  # both have the name by which what is left is told
            installed.remove()


@pytest.fixture
def containers(move: Move) -> Iterator[Containers]:
    labels = {names.ENABLED_LABEL: "true"}
    with fresh_namespace(move.old.sandbox, labels=labels) as namespace:
        yield Containers(move.old.sandbox, namespace)


def until_told(pod: str) -> str:
    return f"until [ -e /host/{pod} ]; do sleep 0.2; done"


def test_no_pod_is_lost_or_unprotected_by_the_move_to_the_new_namespace(
    move: Move, containers: Containers
) -> None:
    sandbox = containers.sandbox
    for name in ("runs", "ends"):
        containers.create(name, until_told(name), limits=LIMITS, host_folder=FLAGS)
    for name in ("runs", "ends"):
        containers.runs(name)
    containers.create_job(
        "several", "sleep 1", limits=LIMITS, spec={"completions": 4, "backoffLimit": 0}
    )
    containers.create(
        "waits", until_told("waits"), limits={**LIMITS, "cpu": "2"}, host_folder=FLAGS
    )
    wait_until(lambda: names.JOB_ID_LABEL in labels_of(containers, "waits"), READY_S)
    waiting, before = containers.job_of("waits"), containers.get("runs")

    walk(move, containers)

    move.new.await_ready()
    assert not move.old.pods()
    after = containers.get("runs")
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert containers.job_of("waits") == waiting
    for name in ("runs", "waits"):
        move.tell(name)
    for name in ("runs", "ends", "waits"):
        assert containers.ends(name, READY_S)["status"]["phase"] == "Succeeded"
        assert ("COMPLETED", "0:0") == containers.accounted(name)
    job = f"/apis/batch/v1/namespaces/{containers.namespace}/jobs/several"
    wait_until(
        lambda: sandbox.admin.get(job)["status"].get("succeeded") == 4, READY_S, sandbox=sandbox
    )
    for pod in sandbox.admin.get(f"/api/v1/namespaces/{containers.namespace}/pods")["items"]:
        assert_held(containers, pod)


def walk(move: Move, containers: Containers) -> None:
    """Type what the page says; between the two releases a pod ends, and another is refused."""
    (pause,) = (
        block for block in pages.blocks(PAGE) if "kind: ValidatingAdmissionPolicy" in block.text
    )
    (move.reader.folder / "pause.yaml").write_text(pause.text)
    (steps,) = (block for block in pages.blocks(PAGE) if "helm get values" in block.text)
    for command in steps.commands():
        if command.startswith("helm install"):
            assert not move.old.left()
            move.tell("ends")
            containers.ends("ends")
            with pytest.raises(ApiError, match="moving to another slurm-bridge"):
                containers.create("early", "exit 0", limits=LIMITS)
        move.reader.types(command)
        if command.startswith("helm get values"):
            name_the_new_image(move.values)
        if command.startswith("helm install"):
            move.new.await_ready()


def name_the_new_image(file: Path) -> None:
    """As the page asks; and the URL of slurmrestd is http, which has to be allowed since."""
    values = yaml.safe_load(file.read_text())
    del values["image"]
    values["config"]["slurm"]["insecure"] = True
    file.write_text(yaml.safe_dump(values))


def labels_of(containers: Containers, name: str) -> dict[str, str]:
    labels: dict[str, str] = containers.get(name)["metadata"].get("labels", {})
    return labels


def assert_held(containers: Containers, pod: dict[str, Any]) -> None:
    """The pod's job began before its container, had its node, and ended no earlier."""
    job = pod["metadata"]["labels"][names.JOB_ID_LABEL]
    containers.accounted_job(job)
    wanted = ("-X", "-n", "-P", "-j", job, "-o", "NodeList,Start,End")
    node, start, end = containers.sandbox.run("sacct", *wanted).strip().split("|")
    (status,) = pod["status"]["containerStatuses"]
    ran = status["state"]["terminated"]
    assert node == pod["spec"]["nodeName"]
    assert local(start) <= moment(ran["startedAt"]), pod["metadata"]["name"]
    assert moment(ran["finishedAt"]) <= local(end), pod["metadata"]["name"]


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def local(text: str) -> datetime:
    """Slurm's, in this machine's time zone."""
    return datetime.fromisoformat(text).astimezone(UTC)
