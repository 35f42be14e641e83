"""Collections of slurmdbd whose records can be saved and deleted."""

from collections.abc import Mapping
from typing import Generic, TypeVar

from msgspec import Struct

from slurmclient.calls.speaker import Outcome, Speaker
from slurmclient.resources.collection import Collection

M = TypeVar("M", bound=Struct)


class Records(Collection[M], Generic[M]):
    """A collection with `save` and `delete`."""

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
        """Describe where the records are; the other arguments are those of `Collection`.

        Args:
            saves: The operation that creates and changes records; "" if there is none.
            deletes: The operation that deletes one by name; "" if there is none.
        """
        super().__init__(speaker, kind, key, lists=lists, gets=gets, parameter=parameter)
        self._saves = saves
        self._deletes = deletes

    async def save(self, *records: Mapping[str, object]) -> Outcome:
        """Create or change records.

        Args:
            records: Slurm's fields of each (OpenAPI: as in the answer to `list`); fields that are
                left out keep their values.
        """
        _, outcome = await self._speaker.write(self._saves, body={self._key: list(records)})
        return outcome

    async def delete(self, name: str | int) -> Outcome:
        """Delete a record.

        Raises:
            NotFound: If there is no such record.
            TypeError: If Slurm cannot delete such records by name.
        """
        if not self._deletes:
            raise TypeError(f"Slurm cannot delete one of the {self._key} by name")
        _, outcome = await self._speaker.write(self._deletes, {self._parameter: name})
        return outcome
