"""Everything that can be set."""

from dataclasses import dataclass, field
from typing import Final

from slurmexporter.families.chapter import Limits

SLOW_SOURCES: Final = {"licenses": 2.0, "reservations": 2.0, "shares": 4.0, "accounting": 20.0}
"""Sources that are read less often, as multiples of the interval."""
_STALE_INTERVALS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings from the command line and the environment."""

    urls: tuple[str, ...] = ()
    """URLs of slurmrestd, several for fail-over."""
    api: str = "auto"
    """`auto`, or a version of the API such as `v0.0.43`."""
    token_file: str = ""
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    host: str = ""
    """The address to listen on; "" for all."""
    port: int = 8080
    web_config_file: str = ""
    """TLS and credentials of those who scrape, as in Prometheus' exporter-toolkit; "" for none."""
    names: str = "own"
    """The name set that `/metrics` serves."""
    interval_s: float = 15.0
    timeout_s: float = 10.0
    stale_after_s: float = 0.0
    """When to drop data that could not be refreshed; 0 for five intervals."""
    look_rate: float = 100.0
    """Maximum number of jobs to read singly per second."""
    reason_rate: float = 20.0
    """Maximum number of pending jobs to read per second for their reasons; 0 for none."""
    full_list_max: int = 20_000
    """Maximum number of jobs to list at once, as at start-up; more are read one by one."""
    max_backoff: float = 4.0
    """Largest factor by which to poll less often while slurmctld is slow."""
    user_names: bool = False
    """Whether the pages have the names of users."""
    max_series: int = 100_000
    """Maximum number of series in one chapter of a page."""
    job_info: int = 0
    """Maximum number of jobs with series of their own."""
    has_efficiency: bool = False
    has_accounting: bool = True
    cluster_label: str = ""
    include: str = ""
    exclude: str = ""
    log_level: str = "info"
    limits: Limits = field(default_factory=Limits)

    def every_s(self, source: str) -> float:
        """Return the time between the beginnings of two readings of a source."""
        return self.interval_s * SLOW_SOURCES.get(source, 1.0)

    def stale_s(self, source: str) -> float:
        """Return the age at which the reading of a source is dropped."""
        base_s = self.stale_after_s or _STALE_INTERVALS * self.interval_s
        return base_s * SLOW_SOURCES.get(source, 1.0)
