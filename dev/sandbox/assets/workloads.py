"""Real controllers of workload kinds.

JobSet, LeaderWorkerSet and coscheduling's PodGroup, compiled from Go modules.

Two modules lock them (workloads/*/go.mod, go.sum): the scheduler plugins need an older Kubernetes
than the other two. Their CRDs and webhooks come from the same modules, so they match. Takes about 5
minutes on two cores and 1 GB of memory; 160 MB stay.
"""

import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.assets import cache, gobuild, kube
from sandbox.assets.kits import AssetName
from sandbox.assets.settings import Settings

MODULES = Path(__file__).with_name("workloads")
SOURCES = ("go.mod", "go.sum")
MANIFESTS = "manifests"
"""Beside bin/: a folder for each program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """One program and the manifests that go with it."""

    program: str
    folder: str
    """The folder, below `MODULES`, of the Go module that locks it."""
    module: str
    package: str
    manifests: tuple[str, ...]
    """Paths in the module: its CRDs and, where it has some, its webhooks."""
    version_variable: str = ""
    """The variable the version is linked into."""


CONTROLLERS = (
    Controller(
        program="jobset",
        folder="sets",
        module="sigs.k8s.io/jobset",
        package="sigs.k8s.io/jobset",
        manifests=(
            "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml",
            "config/components/webhook/manifests.yaml",
        ),
        version_variable="sigs.k8s.io/jobset/pkg/version.GitVersion",
    ),
    Controller(
        program="lws",
        folder="sets",
        module="sigs.k8s.io/lws",
        package="sigs.k8s.io/lws/cmd",
        manifests=(
            "config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml",
            "config/webhook/manifests.yaml",
        ),
        version_variable="sigs.k8s.io/lws/pkg/version.GitVersion",
    ),
    Controller(
        program="coscheduling",
        folder="coscheduling",
        module="sigs.k8s.io/scheduler-plugins",
        package="sigs.k8s.io/scheduler-plugins/cmd/controller",
        manifests=(
            "config/crd/bases/scheduling.x-k8s.io_podgroups.yaml",
            "config/crd/bases/scheduling.x-k8s.io_elasticquotas.yaml",
        ),
    ),
)


def recipe(settings: Settings) -> cache.Recipe:
    """Return the recipe; as with Kubernetes, Go's version is not part of the key."""
    folders = sorted({controller.folder for controller in CONTROLLERS})
    sources = [(MODULES / folder / name).read_bytes() for folder in folders for name in SOURCES]
    return cache.Recipe(
        name=AssetName.WORKLOADS,
        key=cache.key(*sources, repr(CONTROLLERS), platform.machine()),
        make=lambda site: _make(site, settings),
    )


def versions(folder: str) -> Mapping[str, str]:
    """Return the modules that a folder's go.mod requires, with their versions."""
    return kube.modules((MODULES / folder / "go.mod").read_text())


def _make(site: cache.Site, settings: Settings) -> cache.RecipeResult:
    workshop = gobuild.workshop(site, settings)
    origin = workshop.go.origin
    site.tell(f"compiling the controllers with {origin}; from nothing this takes about 5 minutes")
    built: dict[str, str] = {}
    for folder in dict.fromkeys(controller.folder for controller in CONTROLLERS):
        required = versions(folder)
        those = [controller for controller in CONTROLLERS if controller.folder == folder]
        definitions = [
            f"-X {c.version_variable}={required[c.module]}" for c in those if c.version_variable
        ]
        packages = [controller.package for controller in those]
        workshop.build(MODULES / folder, packages, " ".join(["-s -w", *definitions]))
        for controller in those:
            _take(
                controller,
                workshop.modules / f"{controller.module}@{required[controller.module]}",
                site,
            )
            built[controller.module] = required[controller.module]
    return workshop.finish(AssetName.WORKLOADS, built, settings)


def _take(controller: Controller, source: Path, site: cache.Site) -> None:
    """Rename the program and copy its manifests from the module."""
    program = site.tree / "bin" / Path(controller.package).name
    program.rename(program.with_name(controller.program))
    folder = site.tree / MANIFESTS / controller.program
    folder.mkdir(parents=True)
    for path in controller.manifests:
        shutil.copyfile(source / path, folder / Path(path).name)
