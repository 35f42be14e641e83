"""JobSet's and LeaderWorkerSet's own end-to-end tests, from e2e_sets/go.mod and go.sum.

Takes about 5 minutes of a processor and 1 GB of disk from nothing; 150 MB stay. Only `make test-e2e-sets`
needs it.
"""

import platform
from pathlib import Path

from sandbox.assets import cache, gobuild, kube
from sandbox.assets.kits import AssetName
from sandbox.assets.settings import Settings

MODULE = Path(__file__).with_name("e2e_sets")
SOURCES = ("go.mod", "go.sum", "main.go")
SUITES = {
    "e2e-jobset": "sigs.k8s.io/jobset/test/e2e",
    "e2e-lws": "sigs.k8s.io/lws/test/e2e",
}
_FLAGS = "-s -w"


def recipe(settings: Settings) -> cache.Recipe:
    """Return the recipe; as with Kubernetes, Go's version is not part of the key."""
    sources = [(MODULE / name).read_bytes() for name in SOURCES]
    return cache.Recipe(
        name=AssetName.E2E_SETS,
        key=cache.key(*sources, repr(SUITES), platform.machine()),
        make=lambda site: _make(site, settings),
    )


def modules() -> dict[str, str]:
    """Return the modules that e2e_sets/go.mod requires, with their versions."""
    return kube.modules((MODULE / "go.mod").read_text())


def _make(site: cache.Site, settings: Settings) -> cache.RecipeResult:
    workshop = gobuild.workshop(site, settings)
    origin = workshop.go.origin
    site.tell(f"compiling JobSet's and LeaderWorkerSet's tests with {origin}")
    workshop.build(MODULE, ["."], _FLAGS)
    for program, package in SUITES.items():
        workshop.build_tests(MODULE, package, _FLAGS, program)
    return workshop.finish(AssetName.E2E_SETS, modules(), settings)
