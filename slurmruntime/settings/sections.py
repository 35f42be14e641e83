"""Sections of settings that every program has: its log, its lease, its health."""

from typing import Literal, Self

from pydantic import Field, model_validator

from slurmruntime.settings.values import Address, Count, Seconds, Section

RENEW_JITTER = 1.2
"""A leader waits up to this many retry periods between renewals (`slurmruntime.leading.lease`)."""


class Log(Section):
    """The process's log on standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Lowest level that is logged."
    )
    format: Literal["auto", "json", "text"] = Field(
        "auto",
        description="One JSON object per line, or text for people; auto: text on a terminal.",
    )


class LeaderElection(Section):
    """Election of the replica that acts. All replicas need the same values."""

    enabled: bool = Field(
        default=True, description="Elect a leader; false: no election (a single replica)."
    )
    lease_duration_s: Count = Field(
        15, description="How long others wait after the last renewal before they take over."
    )
    renew_deadline_s: Seconds = Field(
        10, description="How long a leader leads without a renewal; less than lease_duration_s."
    )
    retry_period_s: Seconds = Field(
        2, description=f"Minimum pause between attempts; at most {RENEW_JITTER:g} times as long."
    )

    @model_validator(mode="after")
    def _leader_stops_before_others_start(self) -> Self:
        if not self.retry_period_s * RENEW_JITTER < self.renew_deadline_s < self.lease_duration_s:
            raise ValueError(
                f"need {RENEW_JITTER:g} * retry_period_s < renew_deadline_s < lease_duration_s, "
                f"found {self.retry_period_s:g}, {self.renew_deadline_s:g}, {self.lease_duration_s}"
            )
        return self


class HealthSection(Section):
    """/livez, /readyz and /metrics, plain HTTP."""

    listen: Address = Field("0.0.0.0:8080", description="Address and port of the HTTP server.")
