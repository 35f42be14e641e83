"""What PrivateData hides from the exporter's user. It must be reported, or hidden objects look like none."""

from typing import Final

from slurmclient import Client, SlurmError

PRIVATE: Final = frozenset(
    {"JOBS", "NODES", "PARTITIONS", "ACCOUNTS", "USERS", "USAGE", "RESERVATIONS"}
)
"""The words of slurm.conf's PrivateData that hide exported objects."""
_SEES_ALL: Final = frozenset({"OPERATOR", "ADMINISTRATOR"})


async def hidden(slurm: Client) -> frozenset[str]:
    """Return the words of PrivateData that apply to the token's user.

    That is none for root, SlurmUser, operators and administrators; else all that are set, also if
    slurmdbd does not know the user's level.

    Raises:
        TooOld: If Slurm does not serve its configuration; that needs v0.0.45.
        SlurmError: If it cannot be read.
    """
    conf = await slurm.conf()
    words = frozenset(word.upper() for word in conf.private_data) & PRIVATE
    user = await slurm.user()
    if not words or user in {"root", conf.slurm_user.partition("(")[0]}:
        return frozenset()
    try:
        level = (await slurm.db.users.get(user)).administrator_level if user else frozenset()
    except SlurmError:
        level = frozenset()
    return frozenset() if level & _SEES_ALL else words
