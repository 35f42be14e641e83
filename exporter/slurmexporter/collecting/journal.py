"""What the exporter knows of itself: requests, readings, what is odd, what it does without."""

from collections import defaultdict
from typing import Final

_OPERATIONS: Final = 100
"""The most operations to count apart; slurm-client has fewer that read."""


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
        """What is left out, and why, in one word."""
        self.scrapes = 0
        self.scrape_s = 0.0
        self.is_slurmrestd_up = False
        self.is_slurmctld_up = False
        self.are_databases_up: bool | None = None
        """None without accounting."""
        self.token_expires_s: float | None = None

    def on_call(self, operation: str, seconds: float, outcome: str) -> None:
        """Count a request of slurm-client's."""
        if len(self.request_s) < _OPERATIONS or operation in self.request_s:
            self.requests[operation, outcome] += 1
            self.request_s[operation] += seconds

    def collected(self, source: str, seconds: float, outcome: str, error: str = "") -> None:
        """Count a reading of a source."""
        self.collects[source, outcome] += 1
        self.collect_s[source] += seconds
        self.last_outcome[source] = outcome
        self.last_error[source] = error

    def degrade(self, reason: str, *, holds: bool) -> None:
        """Note whether something is left out for a reason."""
        (self.degraded.add if holds else self.degraded.discard)(reason)
