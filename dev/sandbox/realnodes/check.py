"""Check what real nodes need of this machine: gather facts by trials, and decide which are faults.

All faults are reported at once, with remedies, before anything starts.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.assets import Absent, Asset, AssetName
from sandbox.errors import SandboxError
from sandbox.realnodes import cgroups, network, privileges, remains
from sandbox.realnodes.cgroups import Layout

COMMANDS = ("unshare", "nsenter", "mount", "pivot_root", "umount")
_DISK_BASE_MIB = 1024
_DISK_PER_NODE_MIB = 512
_TRIAL_S = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts about this machine."""

    uid: int
    nodes: int
    """The number of real nodes to start."""
    wanted_network: str = ""
    capabilities: frozenset[int] = frozenset()
    missing_commands: tuple[str, ...] = ()
    layout: Layout | None = None
    missing_controllers: tuple[str, ...] = ()
    unwritable_groups: tuple[str, ...] = ()
    """Hierarchies in which no cgroup can be created, with the reason."""
    failed_trials: Mapping[str, str] = field(default_factory=dict)
    """overlayfs, bridge, nftables -> why a trial failed."""
    state: Path = Path("/")
    free_mib: int = 1 << 30
    """On the disk of the state folder."""
    network_fault: str = ""
    """Why no range of addresses is available."""
    assets: Mapping[AssetName, Asset | Absent] = field(default_factory=dict)
    is_offline: bool = False
    others: tuple[Path, ...] = ()
    """The folders of other running sandboxes with real nodes."""
    left_behind: tuple[str, ...] = ()
    """Bridges and cgroups of sandboxes that were killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A fault or a note, with a remedy."""

    what: str
    remedy: str
    stops: bool
    """False: it is only a note, and real nodes start."""


TRIALS = {
    "overlayfs": "load the module ('modprobe overlay'), or name a --state on a disk that is not an overlay itself",
    "bridge": "load the modules ('modprobe bridge veth'); in a container, give it CAP_NET_ADMIN",
    "nftables": "load the module ('modprobe nf_tables'): kube-proxy needs it",
}
"""The trials, and their remedies."""


def findings(facts: Facts) -> tuple[Finding, ...]:
    """Decide what is wrong or worth knowing, the worst first. Pure."""
    if facts.uid != 0:
        return (
            _stop(
                "real nodes need root: a node is a set of namespaces with mounts, cgroups and a network of its own",
                "run it as root, as in 'sudo .venv/bin/slurm-bridge sandbox up …', or omit --real-nodes: simulated nodes need no root",
            ),
        )
    return tuple(
        sorted(
            (*_kernel(facts), *_room(facts), *_network(facts), *_programs(facts), *_notes(facts)),
            key=lambda finding: not finding.stops,
        )
    )


def _kernel(facts: Facts) -> list[Finding]:
    faults = []
    needed = (privileges.SYS_ADMIN, privileges.NET_ADMIN, privileges.MKNOD)
    if absent := [privileges.NAMES[c] for c in needed if c not in facts.capabilities]:
        faults.append(
            _stop(
                f"root has no {', '.join(absent)} here",
                "in a container, start the container with '--privileged'; otherwise use another machine",
            )
        )
    if facts.missing_commands:
        faults.append(
            _stop(
                f"no {', '.join(facts.missing_commands)} on PATH",
                "install util-linux and mount: 'apt install util-linux mount' on Debian",
            )
        )
    if facts.layout is None:
        faults.append(_stop("no cgroups are mounted", "mount them at /sys/fs/cgroup"))
    elif facts.missing_controllers:
        faults.append(
            _stop(
                f"cgroups of version {facts.layout.version} lack {', '.join(facts.missing_controllers)}",
                "enable them: on the kernel's command line, or in the parent's cgroup.subtree_control",
            )
        )
    if facts.unwritable_groups:
        faults.append(
            _stop(
                f"no cgroup can be created: {'; '.join(facts.unwritable_groups)}",
                "mount them writable; in a container, start the container with '--privileged' and the host's cgroup namespace",
            )
        )
    for name, why in facts.failed_trials.items():
        faults.append(_stop(f"{name} does not work here: {why}", TRIALS[name]))
    return faults


def _room(facts: Facts) -> list[Finding]:
    needed = _DISK_BASE_MIB + facts.nodes * _DISK_PER_NODE_MIB
    if facts.free_mib >= needed:
        return []
    return [
        _stop(
            f"{facts.state} has {facts.free_mib} MiB free, {facts.nodes} real nodes need {needed}",
            "make room, or name a --state on a larger disk",
        )
    ]


def _network(facts: Facts) -> list[Finding]:
    if not facts.network_fault:
        return []
    what, _, remedy = facts.network_fault.rpartition(": ")
    return [_stop(what, remedy)]


def _programs(facts: Facts) -> list[Finding]:
    problems = []
    for name, asset in facts.assets.items():
        if isinstance(asset, Asset):
            continue
        if facts.is_offline:
            problems.append(
                _stop(
                    f"{name}: {asset.reason}, and SANDBOX_OFFLINE forbids fetching it",
                    f"run 'slurm-bridge sandbox fetch {name}' with network, without SANDBOX_OFFLINE",
                )
            )
        else:
            problems.append(
                _note(f"{name}: {asset.reason}", "nothing: 'sandbox up' fetches or builds it first")
            )
    return problems


def _notes(facts: Facts) -> list[Finding]:
    notes = []
    if privileges.SYS_RESOURCE not in facts.capabilities:
        notes.append(
            _note(
                "root has no CAP_SYS_RESOURCE: the out-of-memory killer may pick any process of a node, not its pods first",
                "nothing: containers start anyway",
            )
        )
    if facts.layout is not None and facts.layout.version == 2:  # noqa: PLR2004  # the version
        notes.append(
            _note(
                "this machine has cgroups of version 2, with which real nodes have not been tested yet",
                "please report the result of 'make test-real'",
            )
        )
    if facts.others:
        folders = ", ".join(map(str, facts.others))
        notes.append(
            _note(
                f"other sandboxes with real nodes are running: {folders}",
                "nothing: each has a network and cgroups of its own; they share the processors",
            )
        )
    if facts.left_behind:
        notes.append(
            _note(
                f"a killed sandbox left {', '.join(facts.left_behind)} behind",
                "nothing: the next 'sandbox up --real-nodes' or 'sandbox down' removes it",
            )
        )
    return notes


def _stop(what: str, remedy: str) -> Finding:
    return Finding(what=what, remedy=remedy, stops=True)


def _note(what: str, remedy: str) -> Finding:
    return Finding(what=what, remedy=remedy, stops=False)


def gather(
    state: Path,
    *,
    nodes: int,
    wanted_network: str,
    assets: Mapping[AssetName, Asset | Absent],
    environ: Mapping[str, str],
    is_alive: Callable[[Path], bool],
) -> Facts:
    """Gather the facts about this machine, some by trials; nothing of them stays."""
    if os.getuid() != 0:
        return Facts(uid=os.getuid(), nodes=nodes)
    layout = cgroups.read(Path("/proc/self/mountinfo").read_text())
    bridges = network.bridges()
    groups = cgroups.names(layout) if layout is not None else set()
    left = remains.ownerless(bridges, groups, is_alive)
    disk = next(path for path in (state, *state.parents) if path.is_dir())
    return Facts(
        uid=0,
        nodes=nodes,
        wanted_network=wanted_network,
        capabilities=privileges.effective(),
        missing_commands=tuple(name for name in COMMANDS if shutil.which(name) is None),
        layout=layout,
        missing_controllers=layout.missing(_available(layout)) if layout is not None else (),
        unwritable_groups=_unwritable(layout) if layout is not None else (),
        failed_trials=_trials(disk, assets.get(AssetName.NODE)),
        state=state,
        free_mib=shutil.disk_usage(disk).free >> 20,
        network_fault=_network_fault(wanted_network),
        assets=assets,
        is_offline=environ.get("SANDBOX_OFFLINE", "") in ("1", "true", "yes"),
        others=tuple(folder for bridge, folder in bridges.items() if bridge not in left.bridges),
        left_behind=(*left.bridges, *left.groups),
    )


def _network_fault(wanted: str) -> str:
    try:
        network.choose(network.taken(), wanted)
    except SandboxError as error:
        return str(error)
    return ""


def _available(layout: Layout) -> tuple[str, ...]:
    if layout.version == 1:
        return ()
    (point,) = layout.hierarchies.values()
    return tuple((point / "cgroup.controllers").read_text().split())


def _unwritable(layout: Layout) -> tuple[str, ...]:
    faults = []
    for point in layout.hierarchies.values():
        trial = point / f"{cgroups.PREFIX}trial-{os.getpid()}"
        try:
            trial.mkdir()
            trial.rmdir()
        except OSError as error:
            faults.append(f"{point}: {error.strerror}")
    return tuple(faults)


def _trials(disk: Path, node: Asset | Absent | None) -> dict[str, str]:
    ip = str(node.bin / "ip") if isinstance(node, Asset) else shutil.which("ip")
    nft = str(node.bin / "nft") if isinstance(node, Asset) else shutil.which("nft")
    tried: dict[str, tuple[str, ...]] = {}
    with tempfile.TemporaryDirectory(dir=disk, prefix=".slurm-bridge-trial-") as folder:
        for name in ("lower", "upper", "work", "root"):
            (Path(folder) / name).mkdir()
        layers = f"lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work"
        tried["overlayfs"] = ("mount", "-t", "overlay", "overlay", "-o", layers, f"{folder}/root")
        if ip is not None:
            tried["bridge"] = (ip, "link", "add", "trial", "type", "bridge")
        if nft is not None:
            tried["nftables"] = (
                nft,
                "add table ip trial { chain c { type nat hook output priority 0; } ; }",
            )
        why = {name: _trial(command) for name, command in tried.items()}
    return {name: reason for name, reason in why.items() if reason}


def _trial(command: tuple[str, ...]) -> str:
    """Run a command in namespaces that end with it; return why it failed."""
    try:
        done = subprocess.run(
            ("/usr/bin/unshare", "--mount", "--net", *command),
            capture_output=True,
            text=True,
            check=False,
            timeout=_TRIAL_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    message = (done.stderr or done.stdout).strip().partition("\n")[0]
    return "" if done.returncode == 0 else message or f"exit code {done.returncode}"
