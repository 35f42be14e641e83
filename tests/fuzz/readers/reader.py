"""What the registry says of a reader: whose text it takes, its bound, and its cost as a function of the bytes that it reads."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from tests.fuzz.grammars import TEXT, Grammar


class Author(Enum):
    """Whose text a reader takes."""

    USER = "whoever may create pods, jobs or objects"
    SLURM = "slurmrestd, slurmctld, or whoever pretends to be one to slurm-operator"
    KUBERNETES = "the API server, a kubelet, or whoever reaches our port"
    ADMINISTRATOR = "an administrator, in files and objects that nobody else may write"


USER, SLURM, KUBERNETES, ADMINISTRATOR = Author

FIXED_MEMORY: Final = 256 * 1024
"""Bytes that a reader may take for the shortest text."""

MIB: Final = 2**20
OBJECT: Final = 3 * MIB // 2
"""Bytes of an object; etcd takes no larger one."""
ANNOTATIONS: Final = 256 * 1024
"""Bytes of all annotations of an object; the API server takes no more."""
NAME: Final = 253
"""The longest name in Kubernetes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A reader of others' text.

    It takes at most `fixed_steps + steps * bytes` lines and calls of Python, and at most `FIXED_MEMORY + memory * bytes` bytes of memory.
    """

    name: str
    """As module:function."""
    author: Author
    most_bytes: int
    """The most that it is given, or reads before it refuses."""
    read: Callable[[str], object]
    grammar: Grammar = TEXT
    refusals: tuple[type[Exception], ...] = ()
    """What it may raise; anything else is a fault."""
    steps: float = 8
    fixed_steps: int = 4000
    memory: float = 64
    dear: str = ""
    """Why it may take more steps than one object may cost, and what keeps it off the event loop or apart on it; "" if it may not."""


def in_bytes(read: Callable[[bytes], object]) -> Callable[[str], object]:
    """Let a reader of bytes read a text."""
    return lambda text: read(text.encode(errors="surrogatepass"))


def to_the_end(read: Callable[[str], Iterable[object]]) -> Callable[[str], object]:
    """Let a generator do all of its work."""
    return lambda text: list(read(text))
