"""`--check`: what works with this Slurm, and what to do about the rest."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from slurmclient import Client, SlurmError, TooOld
from slurmexporter.collecting import privacy

_WRITTEN_FOR: Final = (25, 5)


async def findings(slurm: Client) -> AsyncIterator[tuple[bool, str]]:
    """Yield the result of each check: whether it passed, and a line for people."""
    try:
        dialect = await slurm.dialect()
    except SlurmError as error:
        yield False, f"slurmrestd: {error}"
        return
    yield True, f"slurmrestd {dialect.release} of cluster {dialect.cluster}, v0.0.{dialect.version}"
    parts = dialect.release.split(".")[:2]
    if tuple(int(part) for part in parts if part.isdecimal()) < _WRITTEN_FOR:
        yield False, f"Slurm {dialect.release}: the exporter needs 25.05 or later"
    for name, read in (
        ("slurmctld", slurm.ping),
        ("statistics", slurm.diag),
        ("jobs", slurm.jobs.states),
        ("nodes", slurm.nodes.list),
        ("partitions", slurm.partitions.list),
        ("licenses", slurm.licenses.list),
        ("reservations", slurm.reservations.list),
        ("fair-share", slurm.shares.list),
        ("slurmdbd", slurm.db.ping),
        ("limits of QOS", slurm.db.qos.list),
        ("limits of associations", slurm.db.associations.list),
    ):
        yield await _try(name, read)
    yield await _privacy(slurm)


async def _try(name: str, read: Callable[[], Awaitable[object]]) -> tuple[bool, str]:
    try:
        answer = await read()
    except SlurmError as error:
        return False, f"{name}: {error}"
    return True, f"{name}: {len(answer)} read" if hasattr(answer, "__len__") else f"{name}: read"


async def _privacy(slurm: Client) -> tuple[bool, str]:
    try:
        hidden = await privacy.hidden(slurm)
    except TooOld:
        return True, "PrivateData: unknown before v0.0.45; see `scontrol show config`"
    except SlurmError as error:
        return False, f"PrivateData: {error}"
    if hidden:
        words = ", ".join(sorted(hidden)).lower()
        return False, (
            f"PrivateData hides {words} of other users: only what the token's user may see is counted; "
            "use a token of SlurmUser, root or an operator"
        )
    return True, "PrivateData: nothing is hidden from the token's user"
