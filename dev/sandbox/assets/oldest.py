"""The oldest control plane of Kubernetes that we support, from oldest/go.mod and go.sum.

Takes about 8 minutes of a processor and 4 GB of disk from nothing; 130 MB stay. Only
`make test-releases` needs it.
"""

import platform
from pathlib import Path

from sandbox.assets import cache, gobuild, kube
from sandbox.assets.kits import KITS, AssetName
from sandbox.assets.settings import Settings

MODULE = Path(__file__).with_name("oldest")
SOURCES = ("go.mod", "go.sum", "hyper/main.go")
PACKAGES = ("./hyper",)


def recipe(settings: Settings) -> cache.Recipe:
    """Return the recipe; as with the newest, Go's version is not part of the key."""
    sources = [(MODULE / name).read_bytes() for name in SOURCES]
    return cache.Recipe(
        name=AssetName.OLDEST,
        key=cache.key(*sources, *PACKAGES, platform.machine()),
        make=lambda site: _make(site, settings),
    )


def modules() -> dict[str, str]:
    """Return the modules that oldest/go.mod requires, with their versions."""
    return kube.modules((MODULE / "go.mod").read_text())


def _make(site: cache.Site, settings: Settings) -> cache.RecipeResult:
    workshop = gobuild.workshop(site, settings)
    origin = workshop.go.origin
    site.tell(f"compiling the oldest Kubernetes with {origin}; from nothing this takes 5 minutes")
    workshop.build(MODULE, PACKAGES, kube.linker_flags(modules()))
    for name in KITS[AssetName.OLDEST].programs:
        (site.tree / "bin" / name).symlink_to("hyper")
    return workshop.finish(AssetName.OLDEST, modules(), settings)
