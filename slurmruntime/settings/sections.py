"""Sections of settings that every program has: its log, its health."""

from typing import Literal

from pydantic import Field

from slurmruntime.settings.values import Address, Section


class Log(Section):
    """The process's log on standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Lowest level that is logged."
    )


class HealthSection(Section):
    """/livez, /readyz and /metrics, plain HTTP."""

    listen: Address = Field("0.0.0.0:8080", description="Address and port of the HTTP server.")
