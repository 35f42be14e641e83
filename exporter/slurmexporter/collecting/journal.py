"""The exporter's counters about itself: requests, readings, undecodable objects, what is left out."""

from collections import defaultdict
from typing import Final

_OPERATIONS: Final = 100
"""Maximum number of operations to count separately; slurm-client has fewer that read."""


class Journal:
    """Counts what the exporter does."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str], int] = defaultdict(int)
        """By operation and outcome."""
        self.request_s: dict[str, float] = defaultdict(float)
        self.collects: dict[tuple[str, str], int] = defaultdict(int)
        """By source and outcome."""
        self.collect_s: dict[str, float] = defaultdict(float)
        self.last_outcome: dict[str, str] = {}
        self.last_error: dict[str, str] = {}
        self.odd: dict[str, int] = defaultdict(int)
        """Objects that could not be decoded, by source."""
        self.degraded: set[str] = set()
        """What is left out or late, as the reason in one word."""
        self.scrapes = 0
        self.scrape_s = 0.0
        self.is_slurmrestd_up = False
        self.is_slurmctld_up = False
        self.are_databases_up: bool | None = None
        """None without accounting."""
        self.token_expires_s: float | None = None

    def on_call(self, operation: str, seconds: float, outcome: str) -> None:
        """Count a request by slurm-client."""
        if len(self.request_s) < _OPERATIONS or operation in self.request_s:
            self.requests[operation, outcome] += 1
            self.request_s[operation] += seconds

    def count_reading(self, source: str, seconds: float, outcome: str, error: str = "") -> None:
        """Count a reading of a source."""
        self.collects[source, outcome] += 1
        self.collect_s[source] += seconds
        self.last_outcome[source] = outcome
        self.last_error[source] = error

    def degrade(self, reason: str, *, holds: bool) -> None:
        """Set or clear a reason for leaving something out."""
        (self.degraded.add if holds else self.degraded.discard)(reason)
