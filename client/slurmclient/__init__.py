"""An async, typed client of Slurm's REST API (slurmrestd); start at `Client`.

Everything that programs need is here, in `slurmclient.models` (the objects of Slurm, for annotations),
`slurmclient.sync` (without an event loop) and `slurmclient.fake` (a Slurm for tests).
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slurmclient.calls.dialect import Dialect
    from slurmclient.calls.streaming import Stream
    from slurmclient.client import Client
    from slurmclient.errors import (
        Conflict,
        Declined,
        Forbidden,
        LostReply,
        Malformed,
        NameNotFound,
        NotFound,
        Rejected,
        SlurmError,
        TargetNotFound,
        TooOld,
        Unauthorized,
        Unavailable,
    )
    from slurmclient.resources.job_states import has_ended
    from slurmclient.resources.submission import SubmitResult
    from slurmclient.transport.tls import Tls, UnusableTls
    from slurmclient.transport.tokens import JwtKey, Token, TokenCommand, TokenFile, TokenSource
    from slurmclient.watching.cache import Cache
    from slurmclient.watching.events import Added, Deleted, Event, Modified, Restarted
    from slurmclient.wire.reading import Listing, Model, Odd
    from slurmclient.wire.values import Number, Time

__all__ = [
    "Added",
    "Cache",
    "Client",
    "Conflict",
    "Declined",
    "Deleted",
    "Dialect",
    "Event",
    "Forbidden",
    "JwtKey",
    "Listing",
    "LostReply",
    "Malformed",
    "Model",
    "Modified",
    "NameNotFound",
    "NotFound",
    "Number",
    "Odd",
    "Rejected",
    "Restarted",
    "SlurmError",
    "Stream",
    "SubmitResult",
    "TargetNotFound",
    "Time",
    "Tls",
    "Token",
    "TokenCommand",
    "TokenFile",
    "TokenSource",
    "TooOld",
    "Unauthorized",
    "Unavailable",
    "UnusableTls",
    "has_ended",
]

_HOME = {
    name: f"slurmclient.{module}"
    for module, names in {
        "calls.dialect": "Dialect",
        "calls.streaming": "Stream",
        "client": "Client",
        "errors": "Conflict Declined Forbidden LostReply Malformed NameNotFound NotFound Rejected"
        " SlurmError TargetNotFound TooOld Unauthorized Unavailable",
        "resources.job_states": "has_ended",
        "resources.submission": "SubmitResult",
        "transport.tls": "Tls UnusableTls",
        "transport.tokens": "JwtKey Token TokenCommand TokenFile TokenSource",
        "watching.cache": "Cache",
        "watching.events": "Added Deleted Event Modified Restarted",
        "wire.reading": "Listing Model Odd",
        "wire.values": "Number Time",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> object:
    """Import what is asked for, and only that: a program that uses little of this starts quickly."""
    if name == "__version__":
        attribute: object = _version()
    elif name in _HOME:
        attribute = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = attribute
    return attribute


def __dir__() -> list[str]:
    return [*globals(), *_HOME, "__version__"]


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  # 20 ms

    try:
        return version("slurm-client")
    except PackageNotFoundError:  # run from the tree
        return "0+tree"
