"""The layout of a sandbox's state folder, and its options and ports, which never change."""

import json
import os
import random
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from sandbox import identity, ports
from sandbox.errors import SandboxError
from sandbox.identity import Identity
from sandbox.options import Options

MARK = "instance.json"
"""The file that marks a folder as a sandbox's."""
SUPERVISOR = "supervisor"
"""The process that keeps the parts; its log is the parts' history."""
_REMAINS = {"lock", "log"}

PORTS = (
    "etcd",
    "etcd-peer",
    "apiserver",
    "controller-manager",
    "scheduler",
    "kwok",
    "slurmctld",
    "slurmd",
    "slurmrestd",
    "slurmdbd",
    "mariadb",
    "webhook",
    "webhook-health",
    "extender",
    "extender-health",
    "extender-escrow",
    "controllers-health",
    "controllers-escrow",
    "bridge-scheduler",
    "jobset",
    "jobset-health",
    "lws",
    "lws-health",
    "coscheduling-health",
    "coredns",
    "coredns-ready",
    "operator-health",
)
"""Every port of a sandbox, by what listens there; a part's main port has the part's name. Compute nodes have one each
beside these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One sandbox on disk; several may exist side by side, each in its own folder."""

    root: Path
    options: Options
    ports: Mapping[str, int]

    @classmethod
    def create(cls, root: Path, options: Options) -> Self:
        """Create the folder.

        The remains of an earlier sandbox are removed, except its lock and the supervisor's log.

        Raises:
            SandboxError: our servers cannot reach the folder, or slurm.conf cannot contain its name.
        """
        if any(character.isspace() for character in str(root)):
            raise SandboxError(f"{str(root)!r}: slurm.conf allows no blanks in a folder's name")
        identity.check_reachable(root)
        clear(root)
        chosen = ports.choose((*PORTS, *options.compute_names), dice=random.SystemRandom())
        instance = cls(root=root, options=options, ports=chosen)
        facts = {"options": asdict(options), "ports": chosen}
        write_private(root / MARK, json.dumps(facts))
        for log in instance.logs.glob("*.log"):
            if log.stem != SUPERVISOR:
                log.unlink()
        for folder in (instance.logs, instance.kube, instance.slurm, instance.bridge, instance.bin):
            folder.mkdir(exist_ok=True)
        return instance

    @classmethod
    def load(cls, root: Path) -> Self:
        """Return the sandbox in `root`.

        Raises:
            SandboxError: there is none.
        """
        root = root.absolute()
        try:
            facts = json.loads((root / MARK).read_text())
        except FileNotFoundError:
            raise SandboxError(
                f"no sandbox in {root}: start one with 'slurm-bridge sandbox up --state {root}'"
            ) from None
        for several in ("settings", "values", "feature_gates", "workloads"):
            facts["options"][several] = tuple(facts["options"][several])
        return cls(root=root, options=Options(**facts["options"]), ports=facts["ports"])

    @property
    def logs(self) -> Path:
        """One file per part, and supervisor.log."""
        return self.root / "log"

    @property
    def kube(self) -> Path:
        """Certificates, kubeconfigs, configurations and etcd's data."""
        return self.root / "kube"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's credentials."""
        return self.kube / "admin.kubeconfig"

    @property
    def audit_log(self) -> Path:
        """One JSON line for each audited request."""
        return self.kube / "audit.log"

    @property
    def slurm(self) -> Path:
        """slurm.conf, keys, the controller's state and mariadb's data."""
        return self.root / "slurm"

    @property
    def slurm_conf(self) -> Path:
        """The configuration every Slurm program reads, except slurmrestd if it needs its own."""
        return self.slurm / "slurm.conf"

    @property
    def shared(self) -> Path:
        """The shared folder of compute nodes and real nodes, with a folder for each Slurm user who may run jobs."""
        return self.root / "shared"

    @property
    def bridge(self) -> Path:
        """Settings, certificates and tokens of our three services."""
        return self.root / "bridge"

    @property
    def bin(self) -> Path:
        """kubectl, helm and Slurm's commands, for PATH."""
        return self.root / "bin"

    @property
    def env_file(self) -> Path:
        """Shell exports."""
        return self.root / "env"

    @property
    def control(self) -> Path:
        """The supervisor's socket."""
        return self.root / "control"

    def log(self, part: str) -> Path:
        """Return where a part writes its output."""
        return self.logs / f"{part}.log"

    def url(self, port: str, scheme: str = "http") -> str:
        """Return where something listens."""
        return f"{scheme}://127.0.0.1:{self.ports[port]}"


def check_ours(root: Path) -> None:
    """Check that the folder contains nothing but a sandbox or its remains.

    Raises:
        SandboxError: it contains something else.
    """
    names = {path.name for path in root.iterdir()} if root.exists() else set()
    if MARK not in names and not names <= _REMAINS:
        raise SandboxError(f"{root} contains other files than a sandbox's: name another folder")


def clear(root: Path) -> None:
    """Delete a sandbox's files, except its lock and its logs."""
    for path in root.iterdir():
        if path.name in _REMAINS:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def remove(root: Path) -> None:
    """Delete a sandbox's folder, logs included.

    Raises:
        SandboxError: it contains something else.
    """
    check_ours(root)
    if root.exists():
        shutil.rmtree(root)


def write_private(path: Path, content: str | bytes, owner: Identity | None = None) -> Path:
    """Write a file that only its owner (default: the caller) can read; it appears atomically."""
    data = content.encode() if isinstance(content, str) else content
    draft = path.with_name(f".{path.name}.draft")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    if owner is not None and os.getuid() == 0:
        os.chown(draft, owner.uid, owner.gid)
    draft.rename(path)
    return path


def make_folder(path: Path, owner: Identity) -> Path:
    """Create a folder that belongs to `owner`; others may read, not write."""
    path.mkdir(parents=True, exist_ok=True)
    if os.getuid() == 0:
        os.chown(path, owner.uid, owner.gid)
    return path
