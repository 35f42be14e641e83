"""The builder of images and their base, from Debian packages: buildah, and Python with a shell."""

import re

from sandbox.assets.kits import KITS, AssetName
from sandbox.assets.packages import Selection

BUILDAH = Selection(
    kit=KITS[AssetName.BUILDAH],
    version_of="buildah",
    roots=(
        "buildah",
        "netavark",
    ),  # it refuses to start without netavark, even if it needs no network
    follow=re.compile(r"lib"),
    keep=re.compile(r"usr/(bin|lib|lib64)/"),
    programs=KITS[AssetName.BUILDAH].programs,
    edition="1",
)
PYTHON = Selection(
    kit=KITS[AssetName.PYTHON],
    version_of="python3.13",
    roots=(
        *("python3.13", "python3.13-minimal", "libpython3.13-stdlib"),
        *("python3.13-venv", "python3-pip-whl"),  # for building; the image removes them
        *("base-files", "ca-certificates", "coreutils", "dash", "libc-bin", "netbase"),
    ),
    follow=re.compile(r"lib|zlib1g|media-types|tzdata"),
    keep=re.compile(
        r"etc/|usr/(bin|sbin|lib|lib64)/|usr/share/(ca-certificates|python-wheels|zoneinfo)/"
        r"|usr/share/doc/[^/]+/copyright"
    ),
    programs=KITS[AssetName.PYTHON].programs,
    edition="1",
)
