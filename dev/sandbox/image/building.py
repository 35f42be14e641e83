"""Run the Dockerfile's steps with buildah, as root, in namespaces that leave nothing mounted here."""

import json
import resource
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Self

import typer

from sandbox.assets import Asset
from sandbox.errors import SandboxError

TREE = Path(__file__).parents[3]
_BOX = (
    *("unshare", "--mount", "--propagation", "private"),
    *("--pid", "--fork", "--kill-child=KILL", "--mount-proc"),
)
_LIMITS = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
_TAIL_LINES = 20
_LINE = 120


def say_step(step: str) -> None:
    """Print a step of a Dockerfile, on standard error."""
    typer.echo(step if len(step) < _LINE else f"{step[: _LINE - 1]}…", err=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One image of the Dockerfile."""

    name: str
    """With host and tag, as kubelets write it: `docker.io/library/slurm-bridge:0.2.0`."""
    stage: str
    archive: Path
    """Where the image goes, in OCI's layout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """buildah, with storage and configuration of its own."""

    asset: Asset
    folder: Path
    """The folder for everything that it writes, not on an overlay; the caller removes it."""
    tree: Path = TREE
    """The folder of the Dockerfile and of the files that it copies."""

    def of(self, tree: Path) -> Self:
        """Return the same builder for another Dockerfile."""
        return replace(self, tree=tree)

    def build(
        self,
        target: Target,
        base: str,
        secrets: Mapping[str, Path],
        mounts: Mapping[Path, str] = MappingProxyType({}),
        *,
        arguments: Mapping[str, str] = MappingProxyType({}),
        is_squashed: bool = False,
    ) -> None:
        """Build a target of the Dockerfile.

        Args:
            target: the image; without a stage, the Dockerfile's last one.
            base: an image's name, or `docker-archive:FILE`.
            secrets: files by the names under which steps ask for them.
            mounts: files -> where every step sees them, for a Dockerfile that asks for no secrets.
            arguments: the Dockerfile's, without that for the base.
            is_squashed: whether the image is one layer, without deleted files of its base.

        Raises:
            SandboxError: a step failed; with the end of its output.
        """
        self._run(
            "build",
            *("--layers", "--format=oci", "--isolation=chroot", "--network=host"),
            # buildah would set limits of its own, and not every container may raise them.
            *(f"--ulimit={name}={_limit(kind)}" for name, kind in _LIMITS.items()),
            *(f"--secret=id={name},src={path}" for name, path in secrets.items()),
            *(f"--volume={path}:{inside}:ro" for path, inside in mounts.items()),
            f"--build-arg=BASE_IMAGE={base}",
            *(f"--build-arg={name}={value}" for name, value in arguments.items()),
            *(("--squash",) if is_squashed else ()),
            *((f"--target={target.stage}",) if target.stage else ()),
            f"--tag={target.name}",
            str(self.tree),
        )
        target.archive.parent.mkdir(parents=True, exist_ok=True)
        target.archive.unlink(missing_ok=True)  # buildah would add to an existing archive
        self._run("push", "--quiet", target.name, f"oci-archive:{target.archive}:{target.name}")

    def _run(self, command: str, *arguments: str) -> None:
        environment = self._prepare()
        policy = f"--signature-policy={self.folder / 'policy.json'}"
        with subprocess.Popen(
            (*_BOX, str(self.asset.bin / "buildah"), command, policy, *arguments),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as running:
            printed = list(self._echo_steps(running.stdout or ()))
        if running.returncode:
            end = "".join(f"\n    {line}" for line in printed[-_TAIL_LINES:])
            raise SandboxError(f"buildah {command}: exit code {running.returncode}, after{end}")

    def _echo_steps(self, lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            if "STEP " in line:
                say_step(line.strip())
            yield line.rstrip()

    def _prepare(self) -> dict[str, str]:
        """Write buildah's configuration, so that the host's is not used; return its environment."""
        files = {
            "containers.conf": self._own_programs(),
            "registries.conf": "",
            "storage.conf": "[storage]\n"
            'driver = "overlay"\n'
            f'graphroot = "{self.folder}/graph"\n'
            f'runroot = "{self.folder}/run"\n',
            # Bases are named by digest, or made here.
            "policy.json": json.dumps({"default": [{"type": "insecureAcceptAnything"}]}),
        }
        for name, text in files.items():
            (self.folder / name).write_text(text)
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        return {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(self.folder),
            "TMPDIR": str(temporary),
            "CONTAINERS_CONF": str(self.folder / "containers.conf"),
            "CONTAINERS_REGISTRIES_CONF": str(self.folder / "registries.conf"),
            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
        }

    def _own_programs(self) -> str:
        if self.asset.root is None:  # an installed buildah knows where its programs are
            return ""
        return f'[engine]\nhelper_binaries_dir = ["{self.asset.root}/usr/lib/podman"]\n'


def _limit(kind: int) -> str:
    soft, hard = resource.getrlimit(kind)
    return f"{soft}:{hard}"  # -1 is unlimited on both sides
