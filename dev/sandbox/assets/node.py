"""The file system of a real node, from Debian packages: containerd, runc, CNI plugins and a shell."""

import re

from sandbox.assets.kits import KITS, AssetName
from sandbox.assets.packages import Selection

KIT = KITS[AssetName.NODE]
SELECTION = Selection(
    kit=KIT,
    version_of="containerd",
    roots=(
        *("containerd", "runc", "containernetworking-plugins"),
        *("nftables", "iproute2", "mount", "util-linux", "conntrack"),
        *("bash", "dash", "coreutils", "procps", "findutils", "grep", "sed"),
        *("base-files", "libc-bin", "netbase"),
        "busybox-static",  # all there is in the image of that name
    ),
    follow=re.compile(r"lib|zlib1g"),
    keep=re.compile(r"usr/(bin|sbin|lib|lib64)/|etc/"),
    programs=KIT.programs,
    edition="1",
)
