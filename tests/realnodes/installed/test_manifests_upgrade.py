"""From the images and the plain manifests of `90f44191` to ours by `kubectl apply`, while pods wait, run and end."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from bridge import __version__
from sandbox import assets
from sandbox.assets import AssetName
from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.realnodes.containers import Containers
from tests.realnodes.installed import load, predecessor, release, surroundings
from tests.realnodes.installed.load import Load
from tests.realnodes.installed.release import FOR_SLURM, Installed
from tests.servers import fresh_namespace

pytestmark = [pytest.mark.real_all, pytest.mark.timeout(3600)]

FILE = Path("deploy/manifests/slurm-bridge.yaml")
NEVER_S = 1800.0


@dataclass(frozen=True, slots=True)
class Applied:
    """What is installed without Helm."""

    installed: Installed
    before: Path
    """The older checkout."""
    slurm: dict[str, Any]
    """The settings that a user sets."""
    containers: Containers
    known: set[str]
    """The jobs of other tests."""

    def apply(self, tree: Path) -> None:
        """Apply a checkout's manifests as their head says."""
        command = ("apply", "--server-side", "--filename", "-")
        self.installed.sandbox.kubectl(*command, stdin=self._manifests(tree))

    def delete(self, tree: Path) -> None:
        """Delete what they have made, and the namespace."""
        command = ("delete", "--ignore-not-found", "--wait=false", "--filename", "-")
        self.installed.sandbox.kubectl(*command, stdin=self._manifests(tree))
        self.installed.remove()

    def _manifests(self, tree: Path) -> str:
        """Return a checkout's manifests with both images and the settings set."""
        text = (tree / FILE).read_text()
        kube = assets.resolve(AssetName.KUBE, report=lambda _: None).version
        text = text.replace("REGISTRY/kube-scheduler:YOUR-VERSION", f"kube-scheduler:v{kube}")
        text = text.replace("REGISTRY/", "")
        objects = [one for one in yaml.safe_load_all(text) if one]
        for one in objects:
            if one["kind"] == "ConfigMap" and "config.yaml" in one["data"]:
                settings = yaml.safe_load(one["data"]["config.yaml"])
                settings["slurm"] |= self.slurm
                settings["placement"] = {"bind_deadline_s": NEVER_S}
                one["data"]["config.yaml"] = yaml.safe_dump(settings)
        return yaml.safe_dump_all(objects)


@pytest.fixture(scope="module")
def applied(bare: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Applied]:
    folder = tmp_path_factory.mktemp("manifests")
    before = predecessor.built(folder)
    before.load(bare)
    installed = Installed(bare, surroundings.helm())
    with (
        release.ground(bare) as address,
        fresh_namespace(bare, labels={names.ENABLED_LABEL: "true"}) as namespace,
    ):
        slurm = release.values(bare, address)["config"]["slurm"]
        slurm["milli_cpu_per_cpu"] = load.MILLI_CPU_PER_CPU
        known = load.clear(bare)
        found = Applied(installed, before.tree, slurm, Containers(bare, namespace), known)
        installed.create_namespace()
        bare.kubectl("cordon", FOR_SLURM)  # until it is Slurm's, our programs could go there
        found.apply(before.tree)
        installed.await_ready()
        bare.kubectl("uncordon", FOR_SLURM)
        yield found
        found.delete(surroundings.ROOT)
        load.clear(bare)


def test_nothing_is_lost_when_newer_manifests_are_applied(applied: Applied) -> None:
    current = Load(applied.containers, "applied", has_jobs=False, known=applied.known)
    lent = current.of("lent")
    with load.claimed(applied.containers, lent, load.FLAGS, "ReadWriteOncePod"):
        current.put()
        before = current.state()

        applied.apply(surroundings.ROOT)
        current.go_on()
        applied.installed.await_version(__version__)

        assert before == current.state()
        current.end()
