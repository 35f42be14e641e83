"""The programs the sandbox runs.

Real Kubernetes, real Slurm and helm, found or fetched without root.

    with assets.shown(sys.stderr) as report:
        slurm = assets.resolve(assets.AssetName.SLURM, report=report)
        slurm.bin / "slurmctld"

The first source that has the asset is used: the folder named by an environment variable
(SANDBOX_KUBE, SANDBOX_SLURM, SANDBOX_HELM, SANDBOX_PROMETHEUS, SANDBOX_WORKLOADS,
SANDBOX_KUBECONFORM, SANDBOX_NODE, SANDBOX_COREDNS …); the cache; a fetch or build into the cache. PATH is used only on demand
(SANDBOX_USE_PATH=1) or if the fetch fails: a host's Slurm may have an unusual configuration, and tests
should not vary by host.
"""

from sandbox.assets.errors import AssetError
from sandbox.assets.finder import Asset
from sandbox.assets.kits import KITS, USUAL, AssetName
from sandbox.assets.progress import Report, Stage, shown
from sandbox.assets.resolve import Absent, Removal, clean, fetch, resolve, resolve_all, where

__all__ = [
    "KITS",
    "USUAL",
    "Absent",
    "Asset",
    "AssetError",
    "AssetName",
    "Removal",
    "Report",
    "Stage",
    "clean",
    "fetch",
    "resolve",
    "resolve_all",
    "shown",
    "where",
]
