"""The latest reading of each source, and its freshness."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from slurmexporter.families.picture import Picture
from slurmexporter.settings import Settings


class _Entry(Struct, frozen=True):
    reading: object
    at_s: float
    """When the reading began, by the monotonic clock."""
    version: int


class Latest:
    """Keeps the latest reading of each source; a stale one does not count."""

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        """Start without readings; `clock` returns monotonic seconds."""
        self._settings = settings
        self._clock = clock
        self._readings: dict[str, _Entry] = {}
        self._version = 0

    def put(self, source: str, reading: object, *, began_s: float) -> None:
        """Keep a reading that began at this monotonic time; None confirms that the last one is still valid."""
        before = self._readings.get(source)
        if reading is None and before is not None:
            self._readings[source] = _Entry(before.reading, began_s, before.version)
        elif reading is not None:
            self._version += 1
            self._readings[source] = _Entry(reading, began_s, self._version)

    def versions(self, sources: tuple[str, ...]) -> tuple[int, ...] | None:
        """Return the versions of these readings; None unless all are fresh."""
        readings = [self._fresh(source) for source in sources]
        return tuple(reading.version for reading in readings if reading) if all(readings) else None

    def picture(self) -> Picture:
        """Return all fresh readings."""
        fresh = {name: self._fresh(name) for name in self._readings}
        return Picture(**{name: reading.reading for name, reading in fresh.items() if reading})  # type: ignore[arg-type]  # each source has its own type

    def ages_s(self) -> Mapping[str, float]:
        """Return the age of each reading, fresh or not."""
        now_s = self._clock()
        return {name: max(0.0, now_s - reading.at_s) for name, reading in self._readings.items()}

    def is_fresh(self, source: str) -> bool:
        """Check whether there is a fresh reading of a source."""
        return self._fresh(source) is not None

    def _fresh(self, source: str) -> _Entry | None:
        reading = self._readings.get(source)
        if reading is None or self._clock() - reading.at_s > self._settings.stale_s(source):
            return None
        return reading
