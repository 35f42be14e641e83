"""All name sets: the chapters of each page."""

from collections.abc import Mapping
from typing import Final

from slurmexporter.families import (
    native,
    own_jobs,
    own_limits,
    own_nodes,
    own_scheduler,
    own_sharing,
    slinky,
    vpenso,
)
from slurmexporter.families.chapter import Chapter

OWN: Final = (
    own_scheduler.CONTROLLERS,
    own_jobs.JOBS,
    own_jobs.WAITING,
    own_jobs.COUNTERS,
    own_jobs.SINGLE,
    own_nodes.NODES,
    own_nodes.PARTITIONS,
    own_scheduler.SCHEDULER,
    own_sharing.SHARING,
    own_sharing.LICENSES,
    own_sharing.RESERVATIONS,
    own_limits.ACCOUNTING,
    own_limits.USAGES,
    own_sharing.EFFICIENCY,
)
NAMES: Final[Mapping[str, tuple[Chapter, ...]]] = {
    "own": OWN,
    "slinky": slinky.CHAPTERS,
    "native": native.CHAPTERS,
    "vpenso": vpenso.CHAPTERS,
}
NATIVE_PAGES: Final[Mapping[str, Chapter]] = {chapter.name: chapter for chapter in native.CHAPTERS}
"""slurmctld's own pages, by the last part of their path."""
