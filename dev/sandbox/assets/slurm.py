"""Slurm with slurmdbd, mariadbd and the clients, from Debian packages.

Only libraries, plugins and Slurm's own packages are followed: about 45 packages, 22 MiB.
"""

import re
from collections.abc import Callable
from datetime import datetime

from sandbox.assets import cache, packages
from sandbox.assets.kits import KITS, AssetName
from sandbox.assets.packages import Selection
from sandbox.assets.settings import DebianSettings

KIT = KITS[AssetName.SLURM]
ROOTS = (
    "slurmctld",
    "slurmrestd",
    "slurmdbd",
    "slurmd",
    "slurm-client",
    "slurm-wlm-jwt-plugin",
    "slurm-wlm-basic-plugins",
    "mariadb-server-core",
    "mariadb-client-core",
    "openssh-server",  # tests check that it accepts the configuration of login pods
    "libnss-wrapper",  # names a uid without a passwd entry: slurmctld and slurmdbd require a name
)
FOLLOW = re.compile(r"lib|slurm|zlib1g")
KEEP = re.compile(r"usr/(bin|sbin|lib|lib64|share/mariadb)/")
PROGRAMS = (
    *KIT.programs,
    *("slurmd", "slurmstepd", "sshd"),
    *("mariadb", "sprio", "sreport", "sshare", "strigger"),
)
SELECTION = Selection(
    kit=KIT,
    version_of="slurmctld",
    roots=ROOTS,
    follow=FOLLOW,
    keep=KEEP,
    programs=PROGRAMS,
    plugins="slurm-wlm",
    edition="1",
)


def recipe(settings: DebianSettings, now: Callable[[], datetime]) -> cache.Recipe:
    """Return the recipe for Slurm."""
    return packages.recipe(SELECTION, settings, now)
