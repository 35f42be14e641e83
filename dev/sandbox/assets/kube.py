"""Kubernetes, etcd and kwok, compiled from the Go modules that kube/go.mod and go.sum lock.

No registry has the programs.

Takes about 6 minutes on two cores, 2.3 GB of memory and 6 GB of disk; 300 MB stay. The programs of real
nodes are compiled along: they share nearly all packages with the control plane.
"""

import platform
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from sandbox.assets import cache, gobuild
from sandbox.assets.errors import FetchError
from sandbox.assets.kits import AssetName
from sandbox.assets.settings import Settings

MODULE = Path(__file__).with_name("kube")
SOURCES = ("go.mod", "go.sum", "hyper/main.go", "hyper/fakegpus.go", "pause/main.go")
PACKAGES = (
    "./hyper",
    "./pause",
    "go.etcd.io/etcd/server/v3",
    "sigs.k8s.io/kwok/cmd/kwok",
    "k8s.io/kubernetes/cmd/kubectl",
)
PROGRAMS = {"server": "etcd"}
"""Programs that Go names after the last part of their package's path -> their usual names."""
HYPER = (
    *("kube-apiserver", "kube-controller-manager", "kube-scheduler"),
    *("kubelet", "kube-proxy", "fake-gpus", "dra-test-driver"),
)
"""The names hyper is installed under."""
VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
"""Packages the version is linked into; without it the programs report v0.0.0-master."""

DISK_NEEDED = 6 << 30
"""Bytes needed with empty caches: 3.5 GB of caches, up to 2.5 GB of Go's work folder; measured peak
5.9 GB.
"""
DISK_NEEDED_WARM = 3 << 30


def recipe(settings: Settings) -> cache.Recipe:
    """Return the recipe.

    The key leaves Go's version out: go.sum determines the programs, Go only how they run.
    """
    sources = [(MODULE / name).read_bytes() for name in SOURCES]
    return cache.Recipe(
        name=AssetName.KUBE,
        key=cache.key(*sources, *PACKAGES, linker_flags(modules()), platform.machine()),
        make=lambda site: _make(site, settings),
    )


def modules(go_mod: str = "") -> dict[str, str]:
    """Return the modules that kube/go.mod requires, with their versions."""
    text = go_mod or (MODULE / "go.mod").read_text()
    return dict(
        re.findall(r"^\s*(?:require )?(\S+\.\S+/\S+) (v\S+)(?: // indirect)?$", text, re.MULTILINE)
    )


def linker_flags(required: Mapping[str, str]) -> str:
    """Return flags that strip the programs and link the version in."""
    version = required["k8s.io/kubernetes"]
    major, minor, _ = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    definitions = [
        f"-X {p}.{name}={value}" for p in VERSION_PACKAGES for name, value in values.items()
    ]
    return " ".join(["-s -w", *definitions])


def _make(site: cache.Site, settings: Settings) -> cache.RecipeResult:
    workshop = gobuild.workshop(site, settings)
    check_disk(
        site.lasting,
        free=shutil.disk_usage(site.lasting).free,
        present=cache.size(workshop.gopath) + cache.size(workshop.gocache),
    )
    go = workshop.go
    site.tell(f"compiling Kubernetes with {go.origin}; from nothing this takes about 5 minutes")
    workshop.build(MODULE, PACKAGES, linker_flags(modules()))
    for built, name in PROGRAMS.items():
        (site.tree / "bin" / built).rename(site.tree / "bin" / name)
    for name in HYPER:
        (site.tree / "bin" / name).symlink_to("hyper")
    return workshop.finish(AssetName.KUBE, {"go": go.version, **modules()}, settings)


def check_disk(folder: Path, *, free: int, present: int) -> None:
    """Check that a build in `folder` will fit, with `present` bytes of it in the caches already.

    Raises:
        FetchError: the disk is too small.
    """
    needed = max(DISK_NEEDED - present, DISK_NEEDED_WARM)
    if free < needed:
        raise FetchError(
            f"{folder} has {free / 2**30:.1f} GiB free, the build needs {needed / 2**30:.1f}:"
            " make room or set SANDBOX_CACHE to a folder on a larger disk"
        )
