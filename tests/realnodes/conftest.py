"""Real nodes for tests: one sandbox with two of them, shared by all tests of this folder.

Who breaks a node puts it back. Without root, or on a machine that cannot run them, the tests are
skipped and say why.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import machine
from sandbox.client import Sandbox
from sandbox.image import bake, slurm
from sandbox.image.slurm import SlurmImage
from sandbox.operator import images
from sandbox.options import Options
from slurmruntime.values import names
from tests.realnodes.containers import Containers
from tests.servers import fresh_namespace, running_sandbox

OPTIONS = Options(
    accounting=True,
    nodes=0,
    plain_nodes=1,
    real_nodes=2,
    real_gpus=2,
    hurried=True,
    settings=("controllers.start_deadline_s=45", 'placement.required_limits=["memory"]'),
)


@pytest.fixture(scope="session")
def able() -> None:
    """Skip unless this machine can run real nodes."""
    found = machine.findings(Path("/var/tmp"), OPTIONS)  # noqa: S108  # any disk
    faults = [finding.what for finding in found if finding.stops]
    if faults:
        pytest.skip("; ".join(faults))


@pytest.fixture(scope="session")
def slurm_images(able: None) -> tuple[SlurmImage, ...]:
    """The images of Slurm, built once; `SLURM_IMAGES` names a folder that `make slurm-images` filled."""
    return images.ready()


@pytest.fixture(scope="session")
def login_with_sssd(able: None, tmp_path_factory: pytest.TempPathFactory) -> SlurmImage:
    """The image of login on a Debian that has sssd."""
    (image,) = _images(tmp_path_factory, "26-05-sid", "login")
    return image


@pytest.fixture(scope="session")
def real(able: None) -> Iterator[Sandbox]:
    with running_sandbox(OPTIONS) as sandbox:
        yield sandbox


@pytest.fixture
def containers(real: Sandbox) -> Iterator[Containers]:
    """A bridged namespace for pods with real containers."""
    with fresh_namespace(real, labels={names.ENABLED_LABEL: "true"}) as namespace:
        yield Containers(real, namespace)


def _images(
    tmp_path_factory: pytest.TempPathFactory, group: str, *only: str
) -> tuple[SlurmImage, ...]:
    given = os.environ.get("SLURM_IMAGES", "")
    if not given:
        return slurm.build(tmp_path_factory.mktemp("slurm"), group=group, only=only)
    targets = slurm.chosen(bake.read(slurm.BAKE, group), only)
    return tuple(slurm.described(target, Path(given)) for target in targets)
