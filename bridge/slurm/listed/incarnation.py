"""Detect a restart of slurmctld: after a crash, it may assign ids again that were assigned before.

`diag` says since when slurmctld counts. That changes with each start, but also at midnight UTC and whenever
an administrator resets the counters; then the boot time in `conf` (Slurm 26.05) shows that it is still the
same one.
"""

from slurmclient.errors import SlurmError
from slurmruntime.slurm import wire
from slurmruntime.slurm.client import SlurmClient


class Incarnation:
    """The slurmctld that answered last."""

    def __init__(self) -> None:
        self._counts_since = 0
        self._booted_at: int | None = None

    async def may_be_another(self, client: SlurmClient, counts_since: int) -> bool:
        """Check whether what was read since the last check may come from another slurmctld.

        Args:
            client: slurmrestd.
            counts_since: As `diag` has just reported it; 0 in the first second after a start.
        """
        if counts_since and counts_since == self._counts_since:
            return False
        booted_at = await _booted_at(client) if counts_since else None
        is_same = booted_at is not None and booted_at == self._booted_at
        self._counts_since, self._booted_at = counts_since, booted_at
        return not is_same


async def _booted_at(client: SlurmClient) -> int | None:
    """Return when the only slurmctld booted; None if that is not known, and then it may be another one.

    With a backup it says nothing: a host that takes over for the second time has booted before the first time.
    """
    try:
        answer = await client.call("conf", "slurm_get_conf", answer=wire.Configuration)
    except SlurmError:
        return None
    is_only = len(answer.slurm_conf.controllers) == 1
    return answer.slurm_conf_meta.booted_at or None if is_only else None
