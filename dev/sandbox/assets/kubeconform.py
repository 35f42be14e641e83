"""kubeconform, compiled from its Go module, and the CRDs of the chart's operator objects.

Two modules lock them: kubeconform/ the program, kubeconform/crds/ the downloads. Takes half a
minute on two cores; 10 MB stay.
"""

import platform
import shutil
from collections.abc import Mapping
from pathlib import Path

from sandbox.assets import cache, gobuild, kube
from sandbox.assets.kits import AssetName
from sandbox.assets.settings import Settings

MODULE = Path(__file__).with_name("kubeconform")
CRD_MODULE = MODULE / "crds"
PROGRAM = "github.com/yannh/kubeconform"
CRDS: Mapping[str, tuple[str, ...]] = {
    "github.com/prometheus-operator/prometheus-operator": (
        "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
        "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
    ),
    "github.com/cert-manager/cert-manager": (
        "deploy/crds/cert-manager.io_certificates.yaml",
        "deploy/crds/cert-manager.io_issuers.yaml",
    ),
}
"""Module -> paths in it."""
FOLDER = "crds"
"""Beside bin/."""


def recipe(settings: Settings) -> cache.Recipe:
    """Return the recipe; as with Kubernetes, Go's version is not part of the key."""
    sources = [
        (folder / name).read_bytes()
        for folder in (MODULE, CRD_MODULE)
        for name in ("go.mod", "go.sum")
    ]
    return cache.Recipe(
        name=AssetName.KUBECONFORM,
        key=cache.key(*sources, repr(CRDS), platform.machine()),
        make=lambda site: _make(site, settings),
    )


def versions() -> Mapping[str, str]:
    """Return the modules of the program and the CRDs, with their versions."""
    required = kube.modules((MODULE / "go.mod").read_text())
    return {PROGRAM: required[PROGRAM], **kube.modules((CRD_MODULE / "go.mod").read_text())}


def _make(site: cache.Site, settings: Settings) -> cache.RecipeResult:
    workshop = gobuild.workshop(site, settings)
    built = versions()
    site.tell(f"compiling kubeconform with {workshop.go.origin}")
    flags = f"-s -w -X main.version={built[PROGRAM]}"
    workshop.build(MODULE, [f"{PROGRAM}/cmd/kubeconform"], flags)
    workshop.download(CRD_MODULE, list(CRDS))
    (site.tree / FOLDER).mkdir()
    for module, paths in CRDS.items():
        for path in paths:
            source = workshop.modules / f"{module}@{built[module]}" / path
            shutil.copyfile(source, site.tree / FOLDER / source.name)
    return workshop.finish(AssetName.KUBECONFORM, built, settings)
