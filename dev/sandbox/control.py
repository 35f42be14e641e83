"""The protocol of a sandbox's supervisor: one JSON line each way over a Unix socket in its folder.

Only the owner of the folder can open the socket. Requests are answered one after another.
"""

import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from sandbox.errors import SandboxError

_LONGEST_REQUEST = 4096
_PATIENCE_S = 2.0


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request. Verbs: status, start, stop, restart, pause, resume (with a part), down."""

    verb: str
    part: str = ""
    signal: str = "TERM"
    wipe: bool = False
    wait: bool = True
    """True: answer when the started part does; False: at once."""


class PartStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `sandbox status`."""

    name: str
    state: str
    pid: int | None
    port: int
    memory_mib: float


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The result. `error` is empty on success."""

    error: str = ""
    pid: int = 0
    """The supervisor's."""
    parts: tuple[PartStatus, ...] = ()


def call(socket_path: Path, request: Request, *, timeout_s: float = 120) -> Reply:
    """Send a request to the supervisor.

    Raises:
        SandboxError: no supervisor answers, or the request was refused or failed.
    """
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(timeout_s)
        try:
            with _short(socket_path) as address:
                sock.connect(address)
            sock.sendall(msgspec.json.encode(request) + b"\n")
            with sock.makefile("rb") as lines:
                answer = lines.readline()
        except OSError as error:
            raise SandboxError(
                f"no sandbox runs in {socket_path.parent} ({error}): "
                f"start one with 'slurm-bridge sandbox up --state {socket_path.parent}'"
            ) from error
    if not answer:
        raise SandboxError(
            f"the sandbox went down during the request to {request.verb} {request.part}".rstrip()
        )
    reply = msgspec.json.decode(answer, type=Reply)
    if reply.error:
        raise SandboxError(reply.error)
    return reply


def listen(socket_path: Path) -> socket.socket:
    """Return the supervisor's socket, for `answer`."""
    listener = socket.socket(socket.AF_UNIX)
    with _short(socket_path) as address:
        listener.bind(address)
    socket_path.chmod(0o600)
    listener.listen()
    return listener


def answer(listener: socket.socket, handle: Callable[[Request], Reply]) -> None:
    """Accept one connection and answer its request; ignore callers that went away."""
    connection, _ = listener.accept()
    with connection, contextlib.suppress(OSError):
        connection.settimeout(_PATIENCE_S)
        with connection.makefile("rb") as lines:
            line = lines.readline(_LONGEST_REQUEST)
        connection.sendall(msgspec.json.encode(_reply(line, handle)) + b"\n")


def _reply(line: bytes, handle: Callable[[Request], Reply]) -> Reply:
    try:
        return handle(msgspec.json.decode(line, type=Request))
    except (msgspec.DecodeError, SandboxError) as error:
        return Reply(error=str(error))


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    # A Unix socket's address holds 107 bytes and a folder's path may be longer: use a descriptor of
    # the folder.
    descriptor = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)
