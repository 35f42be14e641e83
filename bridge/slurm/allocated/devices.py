"""Read which devices a running job has on a node, as Slurm numbers them."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from slurmclient.errors import Malformed
from slurmruntime.slurm import records, wire
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import hostlist
from slurmruntime.values.ids import JobId, Sluid, SlurmNode

_ENTRY: Final = re.compile(
    r"(?P<gres>[^:,()]+(?::[^:,()]+)?):(?P<count>[0-9]{1,9})(?:\(IDX:(?P<indexes>[-0-9,]*)\))?(?:,|$)"
)
_RANGE: Final = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")
_MOST: Final = 4096
"""Devices of one node."""
_LONGEST: Final = 16 * 2**10
"""Characters about one node: each of 2048 devices by its number."""


async def of_job(
    client: SlurmClient, id_: JobId, node: SlurmNode, *, sluid: Sluid | None
) -> Mapping[str, tuple[int, ...]]:
    """Return the indexes of a job's devices on a node, by GRES: `{"gpu:a100": (0, 1)}`.

    Empty if it has none there, or does not run.

    Raises:
        NotFound: the job does not exist (any more).
        SlurmError: it could not be read.
    """
    wired = records.of(id_, await records.read(client, id_, sluid=sluid, detail=True)).value
    if "RUNNING" not in wired.job_state:
        return {}
    try:
        names = tuple(map(SlurmNode, hostlist.expand(wired.nodes)))
    except ValueError as error:
        raise Malformed("job.get", f"job {id_}: {error}") from error
    return (of(wired, names) or {}).get(node, {})


def of(
    wired: wire.Job, names: Sequence[SlurmNode]
) -> Mapping[SlurmNode, Mapping[str, tuple[int, ...]]] | None:
    """Return a job's device indexes by its nodes and GRES; None if the response lacks them."""
    if not names or len(names) != len(wired.gres_detail):
        return None
    return {name: dict(indexes(text)) for name, text in zip(names, wired.gres_detail, strict=True)}


def indexes(text: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Parse `gpu:a100:3(IDX:0-1,4),nic:1(IDX:0)`; skip entries without indexes, and all beyond `_MOST` devices or `_LONGEST` characters."""
    position = 0
    room = _MOST
    while match := _ENTRY.match(text, position, _LONGEST):
        ranges = tuple(_ranges(match["indexes"] or ""))
        count = sum(map(len, ranges))
        if 0 < count <= room and count == int(match["count"]):
            room -= count
            yield match["gres"], tuple(itertools.chain.from_iterable(ranges))
        position = match.end()


def _ranges(text: str) -> Iterator[range]:
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match is not None:
            yield range(int(match[1]), int(match[2] or match[1]) + 1)
