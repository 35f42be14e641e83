"""Folders that stand for cgroups of version 1."""

from pathlib import Path


def v1(root: Path, group: str, *containers: str) -> Path:
    """Make a pod's group with containers, all with processors 0-3."""
    made = root / "cpuset" / group
    for path in (made.parent, made, *(made / name for name in containers)):
        path.mkdir(parents=True, exist_ok=True)
        (path / "cpuset.cpus").write_text("0-3\n")
    return made
