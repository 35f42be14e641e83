"""Kubernetes' own end-to-end tests of workloads and pods, and what their images hold, from e2e/go.mod and go.sum.

Takes about 15 minutes of a processor and 3 GB of disk from nothing; 200 MB stay. Only `make test-e2e`
needs it.
"""

import platform
from pathlib import Path

from sandbox.assets import cache, gobuild, kube
from sandbox.assets.kits import AssetName
from sandbox.assets.settings import Settings

MODULE = Path(__file__).with_name("e2e")
SOURCES = ("go.mod", "go.sum", "main.go")
PACKAGES = (
    ".",
    "k8s.io/kubernetes/test/images/agnhost",
    "k8s.io/kubernetes/test/images/nonewprivs",
)


def recipe(settings: Settings) -> cache.Recipe:
    """Return the recipe; as with Kubernetes, Go's version is not part of the key."""
    sources = [(MODULE / name).read_bytes() for name in SOURCES]
    return cache.Recipe(
        name=AssetName.E2E,
        key=cache.key(*sources, *PACKAGES, platform.machine()),
        make=lambda site: _make(site, settings),
    )


def modules() -> dict[str, str]:
    """Return the modules that e2e/go.mod requires, with their versions."""
    return kube.modules((MODULE / "go.mod").read_text())


def _make(site: cache.Site, settings: Settings) -> cache.RecipeResult:
    workshop = gobuild.workshop(site, settings)
    origin = workshop.go.origin
    site.tell(f"compiling Kubernetes' tests with {origin}; from nothing this takes 10 minutes")
    workshop.build(MODULE, PACKAGES, kube.linker_flags(modules()))
    return workshop.finish(AssetName.E2E, modules(), settings)
