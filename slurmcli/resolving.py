"""Resolve the hosts in the settings, from where the command runs."""

import socket
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from bridge.settings.slurm import Slurm
from slurmcli.doctor.checks.slurm import Host


def hosts(settings: Slurm) -> Sequence[Host]:
    """Resolve slurmrestd's and slurmctld's hosts, as they are written and without a search path.

    Only a name with a dot can be looked up as it is: a single label needs the search path.
    """
    return [
        Host(
            setting=setting,
            name=name,
            addresses=_addresses(name),
            as_it_is=_addresses(f"{name}.") if _has_both_ways(name) else (),
        )
        for setting, name in _names(settings)
    ]


def _names(settings: Slurm) -> Iterator[tuple[str, str]]:
    for url in settings.url:
        if name := urlsplit(url).hostname:
            yield "slurm.url", name
    for name in settings.controller_host:
        yield "slurm.controller_host", name


def _has_both_ways(name: str) -> bool:
    is_address = ":" in name or name.replace(".", "").isdecimal()
    return "." in name and not name.endswith(".") and not is_address


def _addresses(name: str) -> Sequence[str]:
    try:
        answers = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # unknown, or not a valid name
        return ()
    return sorted({str(address[0]) for *_, address in answers})
