"""`docs/install.md`, walked: every command, in order, with the real helm on a real API server and a real Slurm.

The pods are played, no image is pulled. What cannot be run is listed here, and the page says so beside it.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox import assets
from sandbox.assets.kubeconform import FOLDER as CRD_FOLDER
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names
from tests import pages
from tests.pages import Reader
from tests.servers import running_sandbox, wait_until

PAGE = "install.md"
NOT_RUN = {
    "docker build --tag registry.example/slurm-bridge:0.2.0 .": "no container engine; the Dockerfile's steps have a test",
    "docker push registry.example/slurm-bridge:0.2.0": "no registry",
}
HERE_ONLY = {
    "AuthAltParameters": "the key's path",
    "MaxNodeCount": "a larger one",
    "PartitionName": "the default, too",
}
"""What of the page's slurm.conf the sandbox's does not say in the same words."""
PLAYED = {"leaders", "webhook"}
"""What the doctor misses where pods are only played: nobody leads, and no webhook answers."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """A cluster and a Slurm without us, a node and a namespace that are to be handed over."""
    with running_sandbox(Options(bridge=False, nodes=1, plain_nodes=2)) as own:
        own.admin.create("/api/v1/namespaces", {"metadata": {"name": "research"}})
        yield own


@pytest.fixture(scope="module")
def reader(sandbox: Sandbox, helm: Path, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    instance = sandbox.instance
    here = {
        "…": "registry.example/slurm-bridge",
        "https://slurmrestd.example:6820": instance.url("slurmrestd"),
        "node gpu-1": "node node-0",
        "username=slurm": "username=root",
    }
    typed = pages.reader(tmp_path_factory.mktemp("checkout"), sandbox.env, helm.parent)
    return replace(typed, in_place_of=here, expected={"kubectl slurm doctor": 2})


@pytest.fixture(scope="module")
def walked(sandbox: Sandbox, reader: Reader, kubeconform: assets.Asset) -> dict[str, str]:
    """Walk down the page; what each command printed."""
    sandbox.kubectl("apply", "--server-side", f"-f={kubeconform.bin.parent / CRD_FOLDER}")
    printed: dict[str, str] = {}
    for block in pages.blocks(PAGE):
        if block.language == "yaml":
            add_values(reader, block.text)
        if block.language == "sh":
            for command in block.commands():
                if command not in NOT_RUN:
                    printed[command.split("  #")[0].strip()] = reader.types(command)
    return printed


def add_values(reader: Reader, text: str) -> None:
    """Write the page's values into the file it names, beside what is there."""
    first, _, _ = text.partition("\n")
    file = reader.folder / first.removeprefix("# ")
    before: dict[str, Any] = yaml.safe_load(file.read_text()) if file.exists() else {}
    file.write_text(yaml.safe_dump({**before, **yaml.safe_load(reader.adapted(text))}))


def test_every_command_is_run_or_said_not_to_be(walked: dict[str, str]) -> None:
    assert {"helm install", "helm upgrade", "helm uninstall"} <= {
        " ".join(command.split()[:2]) for command in walked
    }
    for command in NOT_RUN:
        block = next(block for block in pages.blocks(PAGE) if command in block.text)
        assert "# not run by our tests" in block.text


def test_notes_say_the_next_step(walked: dict[str, str]) -> None:
    (notes,) = (said for command, said in walked.items() if command.startswith("helm install"))

    for step in (
        "kubectl -n slurm-bridge-system create secret generic slurm-token --from-file=token=FILE",
        f"kubectl label node NAME {names.EXTERNAL_NODE_LABEL}=true",
        f"kubectl label namespace NAME {names.ENABLED_LABEL}=true",
        "kubectl slurm doctor",
    ):
        assert step in notes


def test_all_pods_run_when_the_page_looks_at_them(walked: dict[str, str]) -> None:
    told = walked["kubectl -n slurm-bridge-system rollout status deployment --timeout=5m"]

    for component in ("webhook", "extender", "controllers", "scheduler"):
        assert f'"slurm-bridge-{component}" successfully rolled out' in told


def test_the_doctor_misses_only_what_is_played(reader: Reader, walked: dict[str, str]) -> None:
    assert "faults" in walked["kubectl slurm doctor"]
    faulty = {
        line.removeprefix("fault").strip().partition("  ")[0]
        for line in walked["kubectl slurm doctor"].splitlines()
        if line.startswith("fault")
    }

    assert faulty <= PLAYED


def test_nothing_is_left_when_it_is_taken_away(sandbox: Sandbox, walked: dict[str, str]) -> None:
    kinds = ("clusterroles", "clusterrolebindings")
    ours = "app.kubernetes.io/name=slurm-bridge"

    def left() -> list[Any]:
        group = "/apis/rbac.authorization.k8s.io/v1"
        found = [sandbox.admin.get(f"{group}/{kind}", labelSelector=ours) for kind in kinds]
        pods = sandbox.admin.get("/api/v1/namespaces/slurm-bridge-system/pods")
        return [item for listed in (*found, pods) for item in listed["items"]]

    wait_until(lambda: not left(), 60, sandbox=sandbox)


def test_a_release_in_namespace_slurm_bridge_is_moved_as_the_page_says(
    sandbox: Sandbox, reader: Reader, walked: dict[str, str]
) -> None:
    """A second one is refused in words before."""
    (steps,) = (block for block in pages.blocks("migration.md") if "helm get values" in block.text)
    move = steps.commands()
    (pause,) = (block for block in pages.blocks("migration.md") if block.language == "yaml")
    (reader.folder / "pause.yaml").write_text(pause.text)
    there = "/api/v1/namespaces/slurm-bridge-system"
    assert walked
    reader.types("kubectl delete namespace slurm-bridge-system")
    install = "helm install slurm-bridge deploy/chart -n {} -f my-values.yaml 2>&1"
    reader.types("kubectl create namespace slurm-bridge")
    reader.types("kubectl -n slurm-bridge create secret generic slurm-token --from-file=token")
    assert "Slurm places no pods of this namespace" in reader.types(install.format("slurm-bridge"))

    second = install.format("slurm-bridge-system --create-namespace")
    refused = replace(reader, expected={second: 1}).types(second)

    assert "slurm-bridge is installed in namespace slurm-bridge already" in refused
    assert "docs/migration.md says how" in refused
    reader.types("kubectl delete namespace slurm-bridge-system --ignore-not-found")
    for command in move:
        reader.types(command)
    assert sandbox.admin.get(f"{there}/secrets/slurm-token")["data"]["token"]
    assert sandbox.admin.get(f"{there}/configmaps/slurm-bridge-config")
    reader.types("helm uninstall slurm-bridge -n slurm-bridge-system")


def test_the_pages_slurm_conf_is_the_one_all_tests_run_with(sandbox: Sandbox) -> None:
    (page,) = (block for block in pages.blocks(PAGE) if not block.language)
    ours = sandbox.slurm_conf.read_text()

    for line in page.commands():
        if line.partition("=")[0] not in HERE_ONLY:
            assert line in ours
    assert all(f"\n{key}=" in f"\n{page.text}" and f"{key}=" in ours for key in HERE_ONLY)
