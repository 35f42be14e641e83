"""Read who may do everything in Slurm, so that no pod's job becomes theirs."""

from bridge.slurm import wire
from bridge.slurm.client import SlurmClient
from bridge.slurm.errors import SlurmError, TooOld

_NOT_FOUND = 404
"""Releases before 26.05 do not have the path."""


async def slurm_user(client: SlurmClient) -> str:
    """Return the name of SlurmUser; "" if slurmrestd cannot tell (before 26.05).

    Raises:
        SlurmError: it could not be read.
    """
    try:
        answer = await client.call("conf", "GET", "/conf", answer=wire.Configuration)
    except TooOld:
        return ""
    except SlurmError as error:
        if error.status == _NOT_FOUND:
            return ""
        raise
    return answer.slurm_conf.slurm_user.partition("(")[0]
