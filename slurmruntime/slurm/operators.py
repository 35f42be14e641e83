"""Read who may do everything in Slurm, so that no pod's job runs as them."""

from slurmclient.errors import SlurmError, TooOld
from slurmruntime.slurm import wire
from slurmruntime.slurm.client import SlurmClient

_NOT_FOUND = 404
"""Releases before 26.05 do not have the path."""


async def slurm_user(client: SlurmClient) -> frozenset[str]:
    """Return SlurmUser's name and uid; none if slurmrestd does not serve it (before 26.05).

    Raises:
        SlurmError: it could not be read.
    """
    try:
        answer = await client.call("conf", "slurm_get_conf", answer=wire.Configuration)
    except TooOld:
        return frozenset()
    except SlurmError as error:
        if error.status == _NOT_FOUND:
            return frozenset()
        raise
    conf = answer.slurm_conf
    return frozenset({conf.slurm_user, str(conf.slurm_user_id)} if conf.slurm_user else ())
