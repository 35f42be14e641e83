"""A running sandbox from its user's side: for tests, the demo and benchmarks. Everything is synchronous.

with Sandbox.up(folder, Options(accounting=True)) as sandbox:
    sandbox.kubectl("get", "nodes")
    sandbox.restart("slurmctld", signal="KILL")
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Self

from sandbox import control, detours, environment, instance, kubernetes, launch, running, slurm_rest
from sandbox.api import Api
from sandbox.control import PartStatus, Reply, Request
from sandbox.detours import Detours
from sandbox.errors import SandboxError
from sandbox.flags import arguments
from sandbox.instance import SUPERVISOR, Instance
from sandbox.options import Options
from sandbox.process import tail
from sandbox.realnodes import box, inside
from slurmruntime.process.clock import SystemClock

_POLL_S = 0.05
_COMMAND_TIMEOUT_S = 60.0
_SHOWN_CHARS = 300
"""Of a line of a log: enough to see what it says, and all parts still fit on a page."""


class Sandbox:
    """Talks to the supervisor of a running sandbox."""

    def __init__(self, root: Path, supervisor: subprocess.Popen[bytes] | None = None) -> None:
        self.instance = Instance.load(root)
        self._supervisor = supervisor
        """None if another process started it."""

    @classmethod
    def up(
        cls,
        root: Path,
        options: Options,
        *,
        outlives_us: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> Self:
        """Start a sandbox in a separate process and wait until everything answers.

        Args:
            root: its folder.
            options: what it consists of.
            outlives_us: False: when this process dies, even by SIGKILL, the sandbox dies with it.
            progress: called with each line that the supervisor prints.

        Raises:
            SandboxError: it did not come up; the text is the supervisor's.
        """
        root = root.absolute()
        instance.check_ours(root)
        running.check_free(root)
        log = root / "log" / f"{SUPERVISOR}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("")
        with log.open("ab") as output:
            command = (sys.executable, "-m", "sandbox", "up", "--state", str(root))
            supervisor = subprocess.Popen(
                launch.command(
                    (*command, *flags(options)),
                    uid=os.getuid(),
                    gid=os.getgid(),
                    env=None,
                    bound=not outlives_us,
                ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        _await_ready(root, supervisor, log, progress or (lambda _: None))
        return cls(root, supervisor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    def down(self) -> None:
        """End it and remove its folder."""
        if "admin" in self.__dict__:
            self.admin.close()
        running.take_down(self.instance.root)
        if self._supervisor is not None:
            self._supervisor.wait()

    @property
    def supervisor_pid(self) -> int:
        """The process whose death ends everything."""
        return self._ask(Request(verb="status")).pid

    def status(self) -> Mapping[str, PartStatus]:
        """Every part by its name."""
        return {part.name: part for part in self._ask(Request(verb="status")).parts}

    def start(self, part: str, *, wait: bool = True) -> None:
        """Start a part that is down.

        Return when it answers, or at once: the parts that it needs may be down, too.
        """
        self._ask(Request(verb="start", part=part, wait=wait))

    def stop(self, part: str, *, signal: str = "TERM") -> None:
        """End a part; return when it is gone."""
        self._ask(Request(verb="stop", part=part, signal=signal))

    def restart(
        self, part: str, *, signal: str = "TERM", wipe: bool = False, wait: bool = True
    ) -> None:
        """End a part and start it again, with its data emptied in between if `wipe`.

        Return like `start`.
        """
        self._ask(Request(verb="restart", part=part, signal=signal, wipe=wipe, wait=wait))

    def pause(self, part: str) -> None:
        """Suspend a part (SIGSTOP)."""
        self._ask(Request(verb="pause", part=part))

    def resume(self, part: str) -> None:
        """Continue a paused part."""
        self._ask(Request(verb="resume", part=part))

    def on_node(self, node: str, *command: str) -> str:
        """Run a command on a real node, as root; return what it prints.

        Raises:
            SandboxError: the node is down, or the exit code is not 0.
        """
        return inside.run(self._init(node), *command)

    def end_daemon(self, node: str, daemon: str) -> None:
        """Kill a real node's daemon, such as its kubelet; the node starts it again."""
        inside.end(self._init(node), daemon)

    def hold_daemon(self, node: str, daemon: str, *, held: bool) -> None:
        """Kill a real node's daemon for a while, or let it come back."""
        inside.hold(self._init(node), daemon, held=held)

    def press(self, node: str, kind: str) -> None:
        """Put a real node under memory, disk or pid pressure, or relieve it with none."""
        inside.press(self.instance, self._init(node), node, kind)

    def load_image(self, archive: Path) -> None:
        """Load an image into every real node, now and after its reboots."""
        if not archive.is_file():
            raise SandboxError(
                f"no archive {archive}: create one with 'slurm-bridge sandbox image build'"
            )
        copy = box.image_folder(self.instance) / f"{archive.stem}.tar"
        shutil.copyfile(archive, copy)
        for node in self.instance.options.real_node_names:
            if self.status()[node].pid is not None:
                inside.load(self._init(node), copy)

    def real(self, node: str) -> str:
        """Check that a real node of this name exists; return the name.

        Raises:
            SandboxError: there is no such node.
        """
        known = self.instance.options.real_node_names
        if node not in known:
            raise SandboxError(
                f"no real node {node!r} in this sandbox; it has"
                f" {', '.join(known) or 'none: start it with --real-nodes 2'}"
            )
        return node

    def _init(self, node: str) -> int:
        """Return process 1 of a real node, as the host numbers it."""
        pid = self.status()[self.real(node)].pid
        if pid is None:
            raise SandboxError(f"{node} is down: run 'slurm-bridge sandbox start {node}'")
        return box.init_of(pid)

    def detour(self, ways: Detours) -> None:
        """Make services reach parts through other ports, or directly again with {}.

        This restarts the services that talk to Slurm.
        """
        detours.write(self.instance, ways)
        for service in self.instance.options.slurm_services:
            self.restart(service)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.instance.kubeconfig

    def user_kubeconfig(self, user: str, *groups: str) -> Path:
        """Return credentials of an ordinary user: RBAC binds rights to the name or the groups."""
        return kubernetes.user_kubeconfig(
            self.instance, user=user, groups=groups, now=SystemClock().now()
        )

    @cached_property
    def admin(self) -> Api:
        """Return a client for the API server, as its administrator."""
        return Api(self.kubeconfig)

    @property
    def slurm_conf(self) -> Path:
        """The value for SLURM_CONF."""
        return self.instance.slurm_conf

    @property
    def slurmrestd_url(self) -> str:
        """The base URL, without a path."""
        return self.instance.url("slurmrestd")

    @property
    def slurmctld_port(self) -> int:
        """The port slurmctld itself listens on, for the completion RPC."""
        return self.instance.ports["slurmctld"]

    @property
    def token_file(self) -> Path:
        """The file with root's Slurm token."""
        return slurm_rest.token_file(self.instance)

    def token(self, user: str = "root", *, now: datetime | None = None) -> str:
        """Return a fresh token to act as `user` in Slurm, as if issued at `now`."""
        return slurm_rest.token(self.instance, user, now or SystemClock().now())

    @property
    def env(self) -> dict[str, str]:
        """The exports of `DIR/env`."""
        return environment.for_commands(self.instance)

    def run(self, *command: str, stdin: str = "", timeout_s: float = _COMMAND_TIMEOUT_S) -> str:
        """Run kubectl, squeue, sacct …; return the output.

        Raises:
            SandboxError: the exit code is not 0; contains both outputs.
        """
        done = subprocess.run(
            (str(self.instance.bin / command[0]), *command[1:]),
            env=self.env,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )
        if done.returncode != 0:
            raise SandboxError(
                f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done.stdout

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl as the administrator."""
        return self.run("kubectl", *arguments, stdin=stdin)

    def log_tails(self) -> str:
        """Return the end of every part's log, for a failing test."""
        names = sorted(path.stem for path in self.instance.logs.glob("*.log"))
        return "\n".join(
            "\n  ".join(
                (f"--- {name}", *(line[:_SHOWN_CHARS] for line in tail(self.instance.log(name))))
            )
            for name in names
        )

    def create_slurm_nodes(self) -> None:
        """Register node-0 … again, after a wipe of slurmctld in a sandbox without the bridge."""
        slurm_rest.create_nodes(self.instance)

    def _ask(self, request: Request) -> Reply:
        return control.call(self.instance.control, request)


def flags(options: Options) -> tuple[str, ...]:
    """Return the equivalent options of `sandbox up`."""
    values = asdict(options) | {"workloads": ",".join(options.workloads)}
    return tuple(
        argument for field in fields(options) for argument in arguments(field, values[field.name])
    )


def _await_ready(
    root: Path, supervisor: subprocess.Popen[bytes], log: Path, progress: Callable[[str], None]
) -> None:
    with log.open() as lines:
        while not running.is_up(root, supervisor.pid):
            if supervisor.poll() is not None:
                output = log.read_text()
                raise SandboxError(output.partition("error: ")[2].strip() or output.strip())
            progress(lines.read().partition("error: ")[0].rstrip())
            time.sleep(_POLL_S)
        progress(lines.read().rstrip())
