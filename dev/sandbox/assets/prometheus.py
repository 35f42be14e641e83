"""Prometheus and promtool from Debian packages.

The tests check our metrics, rules and dashboard with them.
"""

import re
from collections.abc import Callable
from datetime import datetime

from sandbox.assets import cache, packages
from sandbox.assets.kits import KITS, AssetName
from sandbox.assets.packages import Selection
from sandbox.assets.settings import DebianSettings

KIT = KITS[AssetName.PROMETHEUS]
SELECTION = Selection(
    kit=KIT,
    version_of="prometheus",
    roots=("prometheus", "promtool"),
    follow=re.compile(r"libc6|libgcc-s1"),
    keep=re.compile(r"usr/(bin|lib|lib64)/"),
    programs=KIT.programs,
    edition="1",
)


def recipe(settings: DebianSettings, now: Callable[[], datetime]) -> cache.Recipe:
    """Return the recipe for Prometheus."""
    return packages.recipe(SELECTION, settings, now)
