"""Collections of slurmdbd, most of whose records can be saved and deleted."""

from collections.abc import Mapping

from slurmclient.calls.speaker import Outcome
from slurmclient.resources.collection import Collection, M


class DatabaseCollection(Collection[M]):
    """A collection of slurmdbd."""

    _service = "slurmdb"


class Records(DatabaseCollection[M]):
    """A collection with `save` and `delete`."""

    async def save(self, *records: Mapping[str, object]) -> Outcome:
        """Create or change records.

        Args:
            records: Slurm's fields of each (OpenAPI: as in the answer to `list`); fields that are
                left out keep their values.
        """
        operation = f"{self._service}_post_{self._key.lower()}"
        _, outcome = await self._speaker.write(operation, body={self._key: list(records)})
        return outcome

    async def delete(self, name: str | int) -> Outcome:
        """Delete a record.

        Raises:
            NotFound: If there is no such record.
            TypeError: If Slurm cannot delete such records by name.
        """
        if not self._one:
            raise TypeError(f"Slurm cannot delete one of the {self._key} by name")
        operation = f"{self._service}_delete_{self._one}"
        _, outcome = await self._speaker.write(operation, {self._parameter: name})
        return outcome
