"""Act inside a real node: run a command, restart a daemon, put it under pressure."""

import json
import subprocess
from pathlib import Path

from sandbox.errors import SandboxError
from sandbox.instance import Instance
from sandbox.realnodes import box, cgroups, configuration

_BALLAST = "/dev/shm/ballast"  # noqa: S108  # the node's own
_CONFIGURATION = "etc/kubernetes/kubelet.json"
DAEMONS = ("containerd", "kubelet", "kube-proxy", "fake-gpus", "dra-test-driver", "slurmd")
_TIMEOUT_S = 60.0
_ENV = ("PATH=/opt/node:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "TERM=dumb")


def run(init: int, *command: str, timeout_s: float = _TIMEOUT_S, into: str = "") -> str:
    """Run a command in the namespaces of a node's process 1; return its output.

    Args:
        init: process 1 of the node, as the host numbers it.
        command: the program and its arguments.
        timeout_s: when to give up.
        into: a file of the node that takes the output instead.

    Raises:
        SandboxError: its exit code is not 0; contains both outputs.
    """
    if into:
        command = ("sh", "-c", 'exec "$@" > "$0"', into, *command)
    groups = cgroups.joined(cgroups.layout(), Path(f"/proc/{init}/cgroup").read_text())
    # Its resources must count as the node's, but nsenter enters namespaces, not cgroups.
    join = 'for group in $0; do echo 0 > "$group/cgroup.procs"; done; exec "$@"'
    spaces = ("--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--root", "--wd=/")
    done = subprocess.run(
        (
            "/bin/sh",
            "-c",
            join,
            " ".join(map(str, groups)),
            "nsenter",
            "--target",
            str(init),
            *spaces,
            "env",
            "-i",
            *_ENV,
            *command,
        ),
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )
    if done.returncode != 0:
        raise SandboxError(
            f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}".strip()
        )
    return done.stdout


def end(init: int, daemon: str, *, signal: str = "KILL") -> None:
    """End a daemon of a node; the node starts it again half a second later.

    Raises:
        SandboxError: the node has no such daemon, or it is not running.
    """
    if daemon not in DAEMONS:
        raise SandboxError(f"a node has no daemon {daemon!r}: expected {', '.join(DAEMONS)}")
    run(init, "bash", "-c", f'kill -{signal} "$(cat /run/{daemon}.pid)"')


def hold(init: int, daemon: str, *, held: bool) -> None:
    """End a daemon and keep it from starting again, or let it start.

    Raises:
        SandboxError: the node has no such daemon.
    """
    mark = f"/run/{daemon}.stopped"
    run(init, *(("touch", mark) if held else ("rm", "-f", mark)))
    if held:
        end(init, daemon)


def press(instance: Instance, init: int, name: str, kind: str) -> None:
    """Put a node under a kind of pressure, or relieve it with `none`.

    Memory is filled until the kubelet's threshold is crossed. For disk and process ids the threshold
    is raised instead, at no cost to this machine; this restarts the kubelet.

    Raises:
        SandboxError: there is no such kind, or the kubelet is not running.
    """
    if kind not in configuration.PRESSURES:
        known = ", ".join(configuration.PRESSURES)
        raise SandboxError(f"no kind of pressure {kind!r}: expected {known}")
    root = Path(f"/proc/{init}/root")
    run(init, "rm", "-f", _BALLAST)
    if kind == "memory":
        mib = configuration.ballast_mib(instance.options.real_memory_mib, used_mib(root))
        run(init, "head", "-c", f"{mib}M", "/dev/zero", into=_BALLAST)
    content = json.dumps(configuration.kubelet(kind), indent=1)
    if content == (root / _CONFIGURATION).read_text():
        return
    for etc in (root / "etc", box.home(instance, name) / "etc"):
        (etc / Path(_CONFIGURATION).relative_to("etc")).write_text(content)
    end(init, "kubelet", signal="TERM")


def used_mib(root: Path) -> int:
    """Return a node's used memory as its kubelet counts it, without file caches.

    Args:
        root: the node's file system.
    """
    first = root / "sys" / "fs" / "cgroup" / "memory"
    if first.is_dir():
        usage, word = first / "memory.usage_in_bytes", "total_inactive_file"
    else:
        usage, word = first.with_name("memory.current"), "inactive_file"
    pairs = (line.split() for line in usage.with_name("memory.stat").read_text().splitlines())
    idle = next(int(number) for key, number in pairs if key == word)
    return (int(usage.read_text()) - idle) >> 20


def load(init: int, image: Path) -> None:
    """Import an image from the sandbox's folder of images.

    Raises:
        SandboxError: containerd refuses it.
    """
    inside = f"/opt/images/{image.name}"
    run(init, "ctr", "-n", "k8s.io", "images", "import", "--local", inside)
