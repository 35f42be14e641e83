"""slurm-exporter from the image and the chart of `90f44191` to ours, and back: it says the same names."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from bridge import __version__
from sandbox.client import Sandbox
from tests.realnodes.installed import predecessor, surroundings
from tests.realnodes.installed.predecessor import Predecessor
from tests.realnodes.installed.release import INFRASTRUCTURE, OURS, READY_S, Installed
from tests.servers import wait_until

pytestmark = pytest.mark.real_all

CHART = surroundings.ROOT / "deploy" / "exporter" / "chart"
NAMESPACE = "monitoring"
RELEASE = "slurm-exporter"
PAGES = ("own", "slinky", "native", "vpenso")
_NAME = re.compile(r"^# TYPE (\S+ \S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Exporter:
    """A release."""

    installed: Installed
    before: Predecessor
    values: Path

    def exchange(self, how: str, *arguments: str) -> None:
        """Install, upgrade or roll back; return when the pod is ready."""
        self.installed.helms(how, RELEASE, *arguments, "--wait", f"--timeout={READY_S:.0f}s")

    def address(self, version: str) -> str:
        """Wait until there is only a pod with the image of this version; return its address."""

        def only() -> str:
            found = self.installed.sandbox.admin.get(f"/api/v1/namespaces/{NAMESPACE}/pods")
            pods = [pod for pod in found["items"] if "deletionTimestamp" not in pod["metadata"]]
            images = [pod["spec"]["containers"][0]["image"] for pod in pods]
            if images != [f"slurm-exporter:{version}"]:
                return ""
            return str(pods[0]["status"]["podIP"])

        return wait_until(only, READY_S, sandbox=self.installed.sandbox)

    def names(self, version: str) -> dict[str, set[str]]:
        """Return names and types of what each page says, once Slurm has been read."""
        server = f"http://{self.address(version)}:8080"

        def page(names: str) -> set[str]:
            answer = httpx.get(f"{server}/metrics/{names}", timeout=30)
            assert 200 == answer.status_code, answer.text
            return set(_NAME.findall(answer.text))

        return {names: page(names) for names in PAGES}


@pytest.fixture(scope="module")
def exporter(bare: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exporter]:
    folder = tmp_path_factory.mktemp("exporter")
    before = predecessor.built(folder)
    before.load(bare)
    values = folder / "values.yaml"
    installed = Installed(bare, surroundings.helm(), NAMESPACE)
    for node in OURS:
        bare.kubectl("label", "--overwrite", "node", node, f"{INFRASTRUCTURE}=true")
    with surroundings.reachable(bare) as gateway:
        server = f"http://{gateway}:{bare.instance.ports['slurmrestd']}"
        wanted = {
            "server": server,
            "token": {"existingSecret": "slurm-token"},
            "nodeSelector": {INFRASTRUCTURE: "true"},
            # The release before names users without being asked.
            "extraEnv": [{"name": "SLURM_EXPORTER_USER_NAMES", "value": "true"}],
        }
        values.write_text(json.dumps(wanted))
        token = bare.run("scontrol", "token", "username=root").strip().removeprefix("SLURM_JWT=")
        literal = f"--from-literal=auth-token={token}"
        bare.kubectl("create", "namespace", NAMESPACE)
        bare.kubectl("-n", NAMESPACE, "create", "secret", "generic", "slurm-token", literal)
        yield Exporter(installed, before, values)
        installed.helms("uninstall", RELEASE, "--ignore-not-found")
        bare.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def test_metrics_keep_their_names_and_types(exporter: Exporter) -> None:
    old = exporter.before.tree / "deploy" / "exporter" / "chart"
    file = ("--values", str(exporter.values))
    exporter.exchange("install", str(old), *file)
    before = exporter.names(predecessor.TAG)
    assert all(before.values())

    exporter.exchange("upgrade", str(CHART), *file)
    assert before == exporter.names(__version__)

    exporter.exchange("rollback")
    assert before == exporter.names(predecessor.TAG)
