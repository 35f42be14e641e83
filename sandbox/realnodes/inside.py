"""Do something inside a real node: run a command, restart a daemon, put it under pressure."""

import json
import subprocess
from pathlib import Path

from sandbox.errors import SandboxError
from sandbox.instance import Instance
from sandbox.realnodes import box, configuration

DAEMONS = ("containerd", "kubelet", "kube-proxy", "fake-gpus")
_TIMEOUT_S = 60.0
_ENV = ("PATH=/opt/node:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "TERM=dumb")


def run(init: int, *command: str, timeout_s: float = _TIMEOUT_S) -> str:
    """Run a command in the namespaces of a node's process 1; return what it prints.

    Raises:
        SandboxError: its exit code is not 0; contains both outputs.
    """
    spaces = ("--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--root", "--wd=/")
    done = subprocess.run(
        ("/usr/bin/nsenter", "--target", str(init), *spaces, "env", "-i", *_ENV, *command),
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
        SandboxError: the node has no such daemon, or it does not run.
    """
    if daemon not in DAEMONS:
        raise SandboxError(f"a node runs no {daemon!r}; it runs {', '.join(DAEMONS)}")
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
    """Put a node under pressure of a kind, or relieve it with `none`: its kubelet restarts.

    The kubelet then finds less than it insists on, whatever there is: it sets the condition and the
    taint and evicts pods as it would on a full machine, at no cost to this one.

    Raises:
        SandboxError: there is no such kind, or the kubelet does not run.
    """
    if kind not in configuration.PRESSURES:
        known = ", ".join(configuration.PRESSURES)
        raise SandboxError(f"no pressure {kind!r}; there are {known}")
    content = json.dumps(configuration.kubelet(kind), indent=1)
    for etc in (box.home(instance, name) / "etc", _root_of(init) / "etc"):
        (etc / "kubernetes" / "kubelet.json").write_text(content)
    end(init, "kubelet", signal="TERM")


def load(init: int, image: Path) -> None:
    """Import an image that lies in the sandbox's folder of images.

    Raises:
        SandboxError: containerd refuses it.
    """
    inside = f"/opt/images/{image.name}"
    run(init, "ctr", "-n", "k8s.io", "images", "import", "--local", inside)


def _root_of(init: int) -> Path:
    return Path(f"/proc/{init}/root")
