"""What each asset consists of: its programs, how to ask for the version, and the minimum version."""

import enum
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.assets.errors import Unusable

VERSION_TIMEOUT_S = 30


class AssetName(enum.StrEnum):
    """The assets of the sandbox, and those only the tests need."""

    KUBE = "kube"
    SLURM = "slurm"
    HELM = "helm"
    PROMETHEUS = "prometheus"
    WORKLOADS = "workloads"
    KUBECONFORM = "kubeconform"
    NODE = "node"
    BUILDAH = "buildah"
    PYTHON = "python"
    COREDNS = "coredns"
    E2E = "e2e"
    E2E_SETS = "e2e-sets"
    OLDEST = "oldest"


_SELDOM = (AssetName.COREDNS, AssetName.E2E, AssetName.E2E_SETS, AssetName.OLDEST)
USUAL = tuple(name for name in AssetName if name not in _SELDOM)
"""The assets to fetch if no names are given: all but those that few need and that take minutes to build."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """The programs of one asset."""

    name: AssetName
    programs: tuple[str, ...]
    variable: str
    """The environment variable that names a folder with these programs."""
    version_command: tuple[str, ...]
    minimum: tuple[int, int]
    """Major and minor version."""


KITS: Mapping[AssetName, Kit] = {
    kit.name: kit
    for kit in (
        Kit(
            name=AssetName.KUBE,
            programs=(
                "etcd",
                "kube-apiserver",
                "kube-controller-manager",
                "kube-scheduler",
                "kubectl",
                "kwok",
            ),
            variable="SANDBOX_KUBE",
            version_command=("kube-apiserver", "--version"),
            minimum=(1, 30),  # the chart's own
        ),
        Kit(
            name=AssetName.SLURM,
            programs=(
                "slurmctld",
                "slurmrestd",
                "slurmdbd",
                "mariadbd",
                "sacct",
                "sacctmgr",
                "salloc",
                "sbatch",
                "scancel",
                "scontrol",
                "sdiag",
                "sinfo",
                "squeue",
                "srun",
            ),
            variable="SANDBOX_SLURM",
            version_command=("slurmctld", "-V"),
            minimum=(25, 5),  # the first release with external nodes and jobs
        ),
        Kit(
            name=AssetName.HELM,
            programs=("helm",),
            variable="SANDBOX_HELM",
            version_command=("helm", "version", "--short"),
            minimum=(3, 14),
        ),
        Kit(
            name=AssetName.PROMETHEUS,
            programs=("prometheus", "promtool"),
            variable="SANDBOX_PROMETHEUS",
            version_command=("promtool", "--version"),
            minimum=(2, 40),
        ),
        Kit(
            name=AssetName.WORKLOADS,
            programs=("jobset", "lws", "coscheduling"),
            variable="SANDBOX_WORKLOADS",
            version_command=("lws", "--version"),  # the only program that can be asked
            minimum=(0, 7),
        ),
        Kit(
            name=AssetName.KUBECONFORM,
            programs=("kubeconform",),
            variable="SANDBOX_KUBECONFORM",
            version_command=("kubeconform", "-v"),
            minimum=(0, 6),
        ),
        Kit(
            name=AssetName.NODE,
            programs=("containerd", "ctr", "runc", "nft", "ip"),
            variable="SANDBOX_NODE",
            version_command=("containerd", "--version"),
            minimum=(2, 0),  # for the version of its configuration that we write
        ),
        Kit(
            name=AssetName.BUILDAH,
            programs=("buildah",),
            variable="SANDBOX_BUILDAH",
            version_command=("buildah", "--version"),
            minimum=(1, 24),  # the first with secrets for single steps
        ),
        Kit(
            name=AssetName.PYTHON,
            programs=("python3.13",),  # as in the Dockerfile's own base
            variable="SANDBOX_PYTHON",
            version_command=("python3.13", "--version"),
            minimum=(3, 13),
        ),
        Kit(
            name=AssetName.COREDNS,
            programs=("coredns",),
            variable="SANDBOX_COREDNS",
            version_command=("coredns", "-version"),
            minimum=(1, 9),  # the first that reads EndpointSlices only
        ),
        Kit(
            name=AssetName.E2E,
            programs=("e2e", "agnhost", "nonewprivs"),
            variable="SANDBOX_E2E",
            version_command=("e2e", "-version"),
            minimum=(1, 34),
        ),
        Kit(
            name=AssetName.E2E_SETS,
            programs=("e2e-sets", "e2e-jobset", "e2e-lws"),
            variable="SANDBOX_E2E_SETS",
            version_command=("e2e-sets",),
            minimum=(0, 7),
        ),
        Kit(
            name=AssetName.OLDEST,
            programs=("kube-apiserver", "kube-controller-manager", "kube-scheduler"),
            variable="SANDBOX_OLDEST",
            version_command=("kube-apiserver", "--version"),
            minimum=(1, 30),
        ),
    )
}


def check(kit: Kit, folder: Path) -> str:
    """Return the version of the kit's programs in `folder`.

    Raises:
        Unusable: with every program that is missing, or why the version is unsuitable.
    """
    absent = missing(kit, folder)
    if absent:
        raise Unusable(*(f"no program {name} in {folder}" for name in absent))
    program, *arguments = kit.version_command
    return checked_version(kit, [str(folder / program), *arguments])


def missing(kit: Kit, folder: Path) -> list[str]:
    """Return the kit's programs that are missing from `folder` or not executable."""
    return [name for name in kit.programs if not is_program(folder / name)]


def is_program(path: Path) -> bool:
    """Check whether this uid can execute the file."""
    return path.is_file() and os.access(path, os.X_OK)


def checked_version(kit: Kit, command: list[str]) -> str:
    """Return the version that `command` reports ("1.36.4"), if it is new enough.

    Raises:
        Unusable: it does not start, reports no version or is too old.
    """
    try:
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unusable(f"{command[0]} does not run: {error}") from error
    if done.returncode != 0:
        message = (done.stderr or done.stdout).strip().partition("\n")[0]
        raise Unusable(f"{command[0]} does not run: exit code {done.returncode}, {message!r}")
    return _new_enough(kit, done.stdout)


def _new_enough(kit: Kit, output: str) -> str:
    # Outputs: Kubernetes v1.36.4; slurm-wlm 26.05.5 (Debian's) or slurm 26.05.5; v4.2.3+g1234567
    # (helm).
    match = re.search(r"\bv?((\d+)\.(\d+)[\w.-]*)", output)
    major, minor = kit.minimum
    if match is None:
        raise Unusable(f"{kit.version_command[0]} prints no version: {output.strip()!r}")
    if (int(match[2]), int(match[3])) < kit.minimum:
        raise Unusable(
            f"{kit.version_command[0]} is version {match[1]}, expected {major}.{minor:02} or newer"
        )
    return match[1]
