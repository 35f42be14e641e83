"""The commit before programs and modules got the names that they have: its tree, with its charts, and its images."""

import os
from dataclasses import dataclass
from pathlib import Path

from sandbox.client import Sandbox
from sandbox.image import ours
from tests.realnodes.installed import older

COMMIT = "90f44191"
TAG = "0.1.0"
"""The version of its charts, which they give their images as tag."""


@dataclass(frozen=True, slots=True)
class Predecessor:
    """A release, as a user has it at hand."""

    tree: Path
    archives: tuple[Path, ...]

    @property
    def chart(self) -> Path:
        """The bridge's chart."""
        return self.tree / "deploy" / "chart"

    def load(self, sandbox: Sandbox) -> None:
        """Give its images to the nodes, beside ours."""
        for archive in self.archives:
            sandbox.load_image(archive)


def built(folder: Path) -> Predecessor:
    """Build it in a folder, unless `SLURM_BRIDGE_IMAGES` has its images; skip in a clone without history."""
    tree = older.checkout(folder / "tree", COMMIT)
    images = Path(os.environ.get("SLURM_BRIDGE_IMAGES", "/nowhere")).absolute() / COMMIT
    if not images.is_dir():
        images = folder / COMMIT
        ours.build(images, tag=TAG, tree=tree)
    return Predecessor(tree, tuple(_named(folder, images / f"{name}.tar") for name in ours.STAGES))


def _named(folder: Path, archive: Path) -> Path:
    """Give an archive a name that ours does not have: nodes keep them by their names."""
    link = folder / f"{archive.stem}-{COMMIT}.tar"
    link.symlink_to(archive)
    return link
