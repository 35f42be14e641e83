"""What the server at the other end speaks."""

from dataclasses import dataclass

import msgspec


class _Version(msgspec.Struct, frozen=True):
    major: str = "0"
    minor: str = "0"
    micro: str = "0"


class _Slurm(msgspec.Struct, frozen=True):
    version: _Version = _Version()
    release: str = ""
    cluster: str = ""


class _Meta(msgspec.Struct, frozen=True):
    slurm: _Slurm = _Slurm()


class _Ping(msgspec.Struct, frozen=True):
    meta: _Meta = _Meta()


class _Paths(msgspec.Struct, frozen=True):
    paths: dict[str, msgspec.Raw]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What the server at the other end speaks."""

    version: int
    """The data parser in use: 45 is v0.0.45."""
    release: str
    """slurmrestd's, as 26.05.5."""
    cluster: str
    """The name of the cluster it serves."""
