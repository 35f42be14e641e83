"""Settings of SlurmJobs: batch scripts as Kubernetes objects (docs/slurmjob.md)."""

from datetime import UTC, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field

from slurmruntime.settings.values import Section


def zone(name: str) -> tzinfo:
    """Return a time zone by its name; UTC is known even where no time zone database is installed.

    Raises:
        ValueError: no time zone has that name.
    """
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            "must be the name of a time zone that this machine knows, such as UTC or Europe/Berlin"
        ) from None


def _known(name: str) -> str:
    zone(name)
    return name


class SlurmJobsSection(Section):
    """SlurmJobs, batch scripts as Kubernetes objects: docs/slurmjob.md."""

    enabled: bool = Field(
        default=False,
        description="Whether SlurmJobs are served; policy rules must allow them, too (match.kinds).",
    )
    time_zone: Annotated[str, AfterValidator(_known)] = Field(
        "UTC", description="What times in scripts are meant in, such as --begin=16:00."
    )
    companion_image: str = Field(
        "",
        max_length=1024,
        description="The image of the pods that print the output of SlurmJobs (spec.output) and copy their results (spec.results);"
        " empty: no such pods."
        " The chart sets its own image.",
    )
