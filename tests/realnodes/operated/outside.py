"""A machine outside Kubernetes with daemons of Slurm: one of the sandbox's boxes that is no node any more.

Its containerd runs them from Slurm's images on the machine's own network; no kubelet has a hand in it.
"""

import itertools
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from sandbox.image.slurm import SlurmImage
from sandbox.realnodes.network import Network
from tests.servers import wait_until

SLURM_USER = 401
NAME = "outside"
_CTR = ("ctr", "-n", "k8s.io")
_LEAVES_S = 60.0


@dataclass(frozen=True, slots=True)
class Outside:
    """The machine; its containers die with it."""

    sandbox: Sandbox
    node: str
    images: Mapping[str, str]
    """Of each daemon."""
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    @property
    def address(self) -> str:
        """Where it is reached, from pods, too."""
        index = self.sandbox.instance.options.real_node_names.index(self.node)
        return Network.load(self.sandbox.instance.root).address(index)

    def run(
        self, daemon: str, files: Mapping[str, str], *arguments: str, hosts: str = "", user: int = 0
    ) -> None:
        """Run a daemon.

        Args:
            daemon: its image's name, and the container's.
            files: of /etc/slurm.
            arguments: for the image's entry point.
            hosts: lines of /etc/hosts.
            user: who runs it, and whose the files are.
        """
        folder = self._folder(daemon)
        (folder / "etc").mkdir(parents=True)
        for name, text in files.items():
            (folder / "etc" / name).write_text(text)
            (folder / "etc" / name).chmod(0o600)
            os.chown(folder / "etc" / name, user, user)
        (folder / "hosts").write_text(f"127.0.0.1 localhost\n{self.address} {NAME}\n{hosts}")
        shared = f"/shared/{folder.name}"
        mounts = (
            f"type=bind,src={shared}/etc,dst=/etc/slurm,options=rbind:rw",
            f"type=bind,src={shared}/hosts,dst=/etc/hosts,options=rbind:rw",
            "type=tmpfs,src=run,dst=/run,options=mode=1777",  # a volume in pods
        )
        options = (
            *("--detach", "--hostname", NAME, "--with-ns", "network:/proc/1/ns/net"),
            *(("--user", f"{user}:{user}") if user else ("--privileged",)),
            *(each for mount in mounts for each in ("--mount", mount)),
            *("--log-uri", f"file://{shared}/log"),
        )
        entry = ("tini", "--", "entrypoint", *arguments)
        self.sandbox.on_node(self.node, *_CTR, "run", *options, self.images[daemon], daemon, *entry)

    def do(self, daemon: str, *command: str) -> str:
        """Run a command beside a daemon; return what it prints."""
        name = f"exec-{next(self._numbers)}"
        enter = (*_CTR, "tasks", "exec", "--exec-id", name, daemon)
        return self.sandbox.on_node(self.node, *enter, *command)

    def tell(self, daemon: str, *command: str) -> str:
        """Run a command that may fail yet; then it prints nothing."""
        try:
            return self.do(daemon, *command)
        except SandboxError:
            return ""

    def know(self, daemon: str, addresses: Mapping[str, str]) -> None:
        """Let a daemon's container find more names."""
        with (self._folder(daemon) / "hosts").open("a") as file:
            file.writelines(f"{address} {name}\n" for name, address in addresses.items())

    def _folder(self, daemon: str) -> Path:
        return self.sandbox.instance.shared / f"{NAME}-{daemon}"


def leave(sandbox: Sandbox, node: str, images: tuple[SlurmImage, ...]) -> Outside:
    """Take a machine out of Kubernetes."""
    sandbox.hold_daemon(node, "kubelet", held=True)
    sandbox.admin.delete(f"/api/v1/nodes/{node}")
    names = "/api/v1/nodes"
    wait_until(
        lambda: (
            node not in {item["metadata"]["name"] for item in sandbox.admin.get(names)["items"]}
        ),
        _LEAVES_S,
        sandbox=sandbox,
    )
    return Outside(sandbox, node, {image.daemon: image.name for image in images})


def key() -> str:
    """Return a key for the daemons, or for tokens."""
    return secrets.token_hex(32)
