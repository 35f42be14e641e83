"""An async, typed client of Slurm's REST API (slurmrestd); start at `Client`.

Everything that programs need is here, in `slurmclient.models` (the objects of Slurm, for annotations),
`slurmclient.sync` (without an event loop) and `slurmclient.fake` (a Slurm for tests).
"""

from importlib.metadata import PackageNotFoundError, version

from slurmclient.calls.dialect import Dialect
from slurmclient.calls.streaming import Stream
from slurmclient.client import Client
from slurmclient.errors import (
    Conflict,
    Forbidden,
    LostReply,
    Malformed,
    NotFound,
    Rejected,
    SlurmError,
    TooOld,
    Unauthorized,
    Unavailable,
)
from slurmclient.resources.job_states import has_ended
from slurmclient.resources.submission import Submitted
from slurmclient.transport.tls import Tls, UnusableTls
from slurmclient.transport.tokens import JwtKey, Token, TokenCommand, TokenFile, TokenSource
from slurmclient.watching.cache import Cache
from slurmclient.watching.events import Added, Deleted, Event, Modified, Restarted
from slurmclient.wire.reading import Listing, Model, Odd
from slurmclient.wire.values import Number, Time

try:
    __version__ = version("slurm-client")
except PackageNotFoundError:  # run from the tree
    __version__ = "0+tree"

__all__ = [
    "Added",
    "Cache",
    "Client",
    "Conflict",
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
    "NotFound",
    "Number",
    "Odd",
    "Rejected",
    "Restarted",
    "SlurmError",
    "Stream",
    "Submitted",
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
