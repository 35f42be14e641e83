"""Our images on real nodes whose control plane has no bridge of its own.

`SLURM_BRIDGE_IMAGES` names a folder that `make image` filled; without it the images are built.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.client import Sandbox
from sandbox.image import ours
from sandbox.options import Options
from tests.realnodes.installed import surroundings
from tests.servers import running_sandbox

OPTIONS = Options(
    accounting=True,
    bridge=False,
    nodes=0,
    plain_nodes=0,
    compute=1,
    real_nodes=3,
    real_memory_mib=3072,
    dns=True,
)


@pytest.fixture(scope="session")
def archives(able: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The archives of our images by their names."""
    given = os.environ.get("SLURM_BRIDGE_IMAGES", "")
    folder = Path(given).absolute() if given else tmp_path_factory.mktemp("images")
    if not given:
        ours.build(folder)
    return {name: folder / f"{name}.tar" for name in ours.STAGES}


@pytest.fixture(scope="session")
def bare(archives: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Both clusters and three real nodes with our images and kube-scheduler's."""
    with running_sandbox(OPTIONS) as sandbox:
        for archive in archives.values():
            sandbox.load_image(archive)
        surroundings.load_scheduler(sandbox, tmp_path_factory.mktemp("scheduler"))
        yield sandbox
