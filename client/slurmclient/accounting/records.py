"""Records."""

from collections.abc import Mapping
from typing import Generic, TypeVar

from msgspec import Struct

from slurmclient.calls.speaker import Outcome, Speaker
from slurmclient.resources.collection import Collection

M = TypeVar("M", bound=Struct)


class Records(Collection[M], Generic[M]):
    """Records that can be saved and removed."""

    def __init__(
        self,
        speaker: Speaker,
        kind: type[M],
        key: str,
        *,
        lists: str,
        gets: str = "",
        parameter: str = "",
        saves: str = "",
        deletes: str = "",
    ) -> None:
        """Say where they are; saves and deletes are operations, the others as of `Collection`."""
        super().__init__(speaker, kind, key, lists=lists, gets=gets, parameter=parameter)
        self._saves = saves
        self._deletes = deletes

    async def save(self, *records: Mapping[str, object]) -> Outcome:
        """Create records or change them: each has Slurm's fields, those that are not named stay as they are."""
        _, outcome = await self._speaker.write(self._saves, body={self._key: list(records)})
        return outcome

    async def delete(self, name: str | int) -> Outcome:
        """Remove a record."""
        _, outcome = await self._speaker.write(self._deletes, {self._parameter: name})
        return outcome
