"""The picture of nodes, partitions or reservations: listed as a whole if one has changed."""

from collections.abc import Iterable

from msgspec import Raw, Struct

from slurmclient.calls.speaker import Speaker
from slurmclient.errors import NotFound
from slurmclient.watching.events import Event, V
from slurmclient.watching.picture import Clock, Picture
from slurmclient.wire import reading
from slurmclient.wire.reading import DecodeResult, Unreadable
from slurmclient.wire.values import Time


class _Name(Struct, frozen=True):
    name: str


class PictureByName(Picture[V]):
    """Objects by name."""

    def __init__(
        self,
        speaker: Speaker,
        kind: type[V],
        clock: Clock,
        *,
        lists: str,
        gets: str,
        key: str,
        parameter: str,
    ) -> None:
        """Start empty; the keyword arguments are those of `Collection`."""
        super().__init__(speaker, kind, clock)
        self._lists = lists
        self._gets = gets
        self._key = key
        self._parameter = parameter
        self._since: Time = None

    async def poll(self) -> list[Event[V]]:
        """List all objects, unless Slurm says that none has changed (HTTP 304)."""
        began = self._clock()
        query = {"update_time": self._since}
        listed = await self._speaker.read(self._lists, self._key, Raw, query=query)  # type: ignore[type-var]  # Raw is no struct
        if listed is None:
            return []
        objects, is_partial = self._named(listed)
        gone = () if is_partial else (key for key in self.objects if key not in objects)
        keys = [*objects, *gone]
        noted = {key for key in keys if self._is_noted_since(key, began)}
        if not noted:  # or else one of them may have changed again since: list again next time
            self._since = listed.updated_at
        self._forget_notes(began)
        return [
            event
            for key in keys
            if key not in noted
            for event in (
                self._store(key, objects[key]) if key in objects else self._put(key, None)
            )
        ]

    def _named(self, listed: Iterable[Raw]) -> tuple[dict[str, DecodeResult[V] | Unreadable], bool]:
        objects: dict[str, DecodeResult[V] | Unreadable] = {}
        self.odd.pop("", None)
        for index, raw in enumerate(listed):
            body = bytes(raw)
            named = reading.lenient(body, _Name, index)
            if isinstance(named, Unreadable):
                self._set_aside("", named.why)
            else:
                objects[named.value.name] = reading.lenient(body, self._kind, index)
        return objects, "" in self.odd

    async def poll_one(self, name: str) -> list[Event[V]]:
        """Read one object."""
        try:
            value: V | None = await self._speaker.read_one(
                self._gets, self._key, self._kind, {self._parameter: name}
            )
        except NotFound:
            value = None
        self._noted[name] = self._clock()
        return list(self._put(name, value))
