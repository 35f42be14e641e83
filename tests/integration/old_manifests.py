"""Published manifests of Sylabs' operators on a real slurmd, where a pretended singularity runs containers."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from jobs.sylabs.job import KINDS
from sandbox.api import ApiError
from sandbox.client import Sandbox
from tests.jobs.sylabs.published import PUBLISHED
from tests.servers import wait_until

_TWO_NODES = {"fox"}
"""Needs more nodes than the sandbox has slurmds; that it is translated is tested in tests/jobs/sylabs."""

_SRUN = """\
while [ "${1#--}" != "$1" ]; do shift; done
exec "$@"
"""
"""Runs a step on the batch node: what steps are to Slurm is not at stake here."""

_SINGULARITY = """\
for last; do :; done
case $1 in
run) exec cat "$last" ;;
esac
shift
while [ "${1#-}" != "$1" ]; do shift; done
[ $# -eq 2 ] && file=$1 || file=lolcow_latest.sif
echo "$last" > "$file"
"""
"""`pull [options] [FILE] URI` and `run [options] FILE`."""


@contextmanager
def containers_pretended(sandbox: Sandbox, folder: Path) -> Iterator[None]:
    """Put programs where jobs look for them, in slurmd's own view of the machine only."""
    for name, text in (("srun", _SRUN), ("singularity", _SINGULARITY)):
        (folder / name).write_text(f"#!/bin/sh\n{text}")
        (folder / name).chmod(0o755)
    _let_everybody_in(folder)
    enter = ("/usr/bin/nsenter", f"--target={sandbox.status()['slurmd'].pid}", "--mount")
    subprocess.run((*enter, "mount", "--bind", str(folder), "/usr/local/bin"), check=True)
    try:
        yield
    finally:
        subprocess.run((*enter, "umount", "--lazy", "/usr/local/bin"), check=True)


def _let_everybody_in(folder: Path) -> None:
    for each in (folder, *folder.parents[:2]):
        each.chmod(0o755)


def run_published(sandbox: Sandbox, namespace: str, patience_s: float) -> None:
    """Create every published manifest, several of which have one name, and see each end as it should."""
    paths: dict[str, str] = {}
    for name, published in PUBLISHED.items():
        manifest = published.manifest
        manifest["metadata"]["name"] = name
        path = _path(namespace, manifest)
        if published.fault:
            with pytest.raises(ApiError, match=published.fault):
                sandbox.admin.create(path, manifest)
        elif name not in _TWO_NODES:
            sandbox.admin.create(path, manifest)
            paths[name] = f"{path}/{name}"

    def statuses() -> dict[str, dict[str, Any]]:
        return {name: sandbox.admin.get(path).get("status", {}) for name, path in paths.items()}

    over = {"Succeeded", "Failed"}
    wait_until(
        lambda: all(status.get("status") in over for status in statuses().values()),
        patience_s,
        sandbox=sandbox,
    )
    for name, status in statuses().items():
        assert ("Succeeded", "Succeeded", 0) == (
            status["status"],
            status["phase"],
            status["exitCode"],
        ), (name, status)
        assert "Complete" in {each["type"] for each in status["conditions"]}
        _clean(status)


def _path(namespace: str, manifest: Mapping[str, Any]) -> str:
    wanted = manifest["apiVersion"], manifest["kind"]
    kind = next(each for each in KINDS if (each.api_version, each.kind) == wanted)
    return f"/apis/{kind.api_version}/namespaces/{namespace}/{kind.plural}"


def _clean(status: Mapping[str, Any]) -> None:
    written = status.get("outputs", {}).get("stdout", "")
    if written.startswith("/tmp/") and os.path.exists(written):  # noqa: S108, PTH110
        os.unlink(written)  # noqa: PTH108
