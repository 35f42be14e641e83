"""The latest reading of each source, and which are fresh."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from slurmexporter.families.picture import Picture
from slurmexporter.settings import Settings


class _Kept(Struct, frozen=True):
    reading: object
    at_s: float
    """When the reading began, by the monotonic clock."""
    version: int


class Latest:
    """Keeps readings; one that is too old is no reading any more."""

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        """Start without readings.

        Args:
            settings: Say when a reading is stale.
            clock: Returns monotonic seconds.
        """
        self._settings = settings
        self._clock = clock
        self._kept: dict[str, _Kept] = {}
        self._version = 0

    def put(self, source: str, reading: object, *, began_s: float) -> None:
        """Keep a new reading; None confirms that the last one still holds.

        Args:
            source: An attribute of `Picture`.
            reading: What was read; None if nothing has changed since.
            began_s: When the reading began, by the monotonic clock.
        """
        before = self._kept.get(source)
        if reading is None and before is not None:
            self._kept[source] = _Kept(before.reading, began_s, before.version)
        elif reading is not None:
            self._version += 1
            self._kept[source] = _Kept(reading, began_s, self._version)

    def versions(self, sources: tuple[str, ...]) -> tuple[int, ...] | None:
        """Return what tells these readings from earlier ones; None unless all are fresh."""
        found = [self._fresh(source) for source in sources]
        return tuple(one.version for one in found if one) if all(found) else None

    def picture(self) -> Picture:
        """Return all fresh readings."""
        fresh = {name: self._fresh(name) for name in self._kept}
        return Picture(**{name: one.reading for name, one in fresh.items() if one})  # type: ignore[arg-type]  # each source has its own type

    def ages_s(self) -> Mapping[str, float]:
        """Return the age of each reading, fresh or not."""
        now_s = self._clock()
        return {name: max(0.0, now_s - kept.at_s) for name, kept in self._kept.items()}

    def is_fresh(self, source: str) -> bool:
        """Check whether there is a fresh reading of a source."""
        return self._fresh(source) is not None

    def _fresh(self, source: str) -> _Kept | None:
        kept = self._kept.get(source)
        if kept is None or self._clock() - kept.at_s > self._settings.stale_s(source):
            return None
        return kept
