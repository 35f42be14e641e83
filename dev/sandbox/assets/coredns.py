"""CoreDNS, compiled from the Go module that coredns/go.mod and go.sum lock, with five of its plugins.

Takes about 5 minutes of a processor and 1 GB of disk; 50 MB stay. Only sandboxes with `--dns` need it.
"""

import platform
from pathlib import Path

from sandbox.assets import cache, gobuild, kube
from sandbox.assets.kits import AssetName
from sandbox.assets.settings import Settings

MODULE = Path(__file__).with_name("coredns")
SOURCES = ("go.mod", "go.sum", "main.go")
PROGRAM = "github.com/coredns/coredns"


def recipe(settings: Settings) -> cache.Recipe:
    """Return the recipe; as with Kubernetes, Go's version is not part of the key."""
    sources = [(MODULE / name).read_bytes() for name in SOURCES]
    return cache.Recipe(
        name=AssetName.COREDNS,
        key=cache.key(*sources, platform.machine()),
        make=lambda site: _make(site, settings),
    )


def version() -> str:
    """Return the version that go.mod requires: `v1.14.7`."""
    return kube.modules((MODULE / "go.mod").read_text())[PROGRAM]


def _make(site: cache.Site, settings: Settings) -> cache.RecipeResult:
    workshop = gobuild.workshop(site, settings)
    origin = workshop.go.origin
    site.tell(f"compiling CoreDNS with {origin}; from nothing this takes about 3 minutes")
    workshop.build(MODULE, ["."], "-s -w")
    return workshop.finish(AssetName.COREDNS, {PROGRAM: version()}, settings)
