"""End a running placeholder with its pod's real outcome: the one message slurmrestd cannot send.

`salloc` sends REQUEST_COMPLETE_JOB_ALLOCATION to slurmctld's own port when its shell exits. Without
this message a job that Slurm does not run itself could only be CANCELLED: `sacct` would show that
for every pod, and no `afterok` dependency would ever be satisfied.

Layout: src/common/slurm_protocol_pack.c, `_pack_complete_job_allocation_msg`; all big-endian:

    u32 length of what follows
    u16 protocol version, u16 flags, u16 message type, u32 body length, u16 forwards, u16 returns,
        u16 address family
    u32 authentication plugin, str token, str user  (str: u32 length with NUL, bytes, NUL; 0: none)
    body since 25.11: u64 sluid, u32 job id, u32 step, u32 het component, u32 wait status
    body of 25.05:    u32 job id, u32 wait status
"""

import asyncio
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from bridge.domain.lifecycle.actions import Outcome
from bridge.slurm.jobs import ENDINGS, Ending
from slurmclient import Tls
from slurmclient.errors import InStandby, LostReply, Malformed, Unauthorized, Unavailable, classify
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.slurm.errors import AUTHENTICATION, IN_STANDBY
from slurmruntime.values.ids import JobId, Sluid

REQUEST_COMPLETE_JOB_ALLOCATION: Final = 5017
RESPONSE_SLURM_RC: Final = 8001
AUTH_JWT: Final = 102
NO_VAL: Final = 0xFFFFFFFE

PROTOCOLS: Final = (((26, 5), 45), ((25, 11), 44), ((25, 5), 43))
"""Slurm release → protocol version, newest first. slurmctld also accepts the last three."""

HAS_STEP_ID: Final = 44
OUT_OF_MEMORY: Final = 253
"""Signal number that sets the job's state to OUT_OF_MEMORY."""

LAST_SIGNAL: Final = 64
LAST_EXIT_CODE: Final = 255
SLUID_LENGTH: Final = 14
_SLUID_BITS: Final = 64
"""13 digits could hold 65."""
LONGEST_REPLY: Final = 65536
OPERATION: Final = "job.complete"

_LENGTH: Final = struct.Struct("!I")
_HEADER: Final = struct.Struct("!HHHIHHH")
_REPLY_HEADER: Final = struct.Struct("!HHHI")
_BODY: Final = struct.Struct("!QIIII")
_OLD_BODY: Final = struct.Struct("!II")
_RETURN_CODE: Final = struct.Struct("!i")

_DIGITS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerHost:
    """Address of one slurmctld: SlurmctldHost, SlurmctldPort."""

    host: str
    port: int = 6817
    timeout_s: float = 10
    """For the connection, and again for the response."""
    tls: Tls | None = None
    """None: the message, with our token, is sent in clear."""

    @override
    def __str__(self) -> str:
        return f"slurmctld at {self.host}:{self.port}"


class ControllerHosts:
    """All hosts of slurmctld, one of which is in charge; the last that answered is asked first."""

    def __init__(self, *controllers: ControllerHost) -> None:
        self._controllers = controllers
        self._first = 0

    async def ask(self, request: bytes) -> int:
        """Return the answer of the slurmctld in charge: a Slurm error number, or 0.

        A host that does not answer, or only waits to take over, is not in charge. If one of them
        has the request nevertheless, the other host's answer is ALREADY_DONE.

        Raises:
            InStandby: a host answered that it is not in charge, and the others not at all.
            LostReply: a host may have carried out the request.
            Unavailable: nothing was sent.
            Unauthorized: the token was refused.
            Malformed: no host answered, and something else did.
        """
        failures: list[Unavailable | Malformed] = []
        first = self._first
        for n in range(len(self._controllers)):
            current = (first + n) % len(self._controllers)
            try:
                code = await _ask(self._controllers[current], request)
            except (Unavailable, Malformed) as error:
                failures.append(error)
            else:
                self._first = current
                return code
        raise _worst(failures)


async def complete(
    client: SlurmClient,
    controllers: ControllerHosts,
    job_id: JobId,
    outcome: Outcome,
    *,
    sluid: Sluid | None,
) -> Ending:
    """End a job as COMPLETED, FAILED n:0, FAILED 0:n, OUT_OF_MEMORY or TIMEOUT.

    A pending job becomes CANCELLED. With a sluid, exactly that job is ended, even if its id has
    been reused (Slurm >= 25.11).

    Raises:
        Unavailable: nothing was sent.
        InStandby: no slurmctld is in charge.
        LostReply: the job may have been ended; a retry is harmless.
        Unauthorized: the token does not belong to the job's owner, SlurmUser or root.
        SlurmError: classified by `slurmruntime.slurm.errors`.
    """
    protocol = protocol_for((await client.dialect()).release_number)
    with client.observed(OPERATION):
        token = await client.token.token()
        try:
            code = await controllers.ask(message(protocol, token, job_id, outcome, sluid))
        except Unauthorized:
            if (renewed := await client.token.token(refused=token)) == token:
                raise
            code = await controllers.ask(message(protocol, renewed, job_id, outcome, sluid))
        if (ending := ENDINGS.get(code)) is not None:
            return ending
        raise classify(OPERATION, None, code)(
            OPERATION, f"slurmctld refuses to end job {job_id}", error_number=code
        )


def wait_status(outcome: Outcome) -> int:
    """Encode an outcome for Slurm: exit code << 8 | signal, as in wait(2).

    There is no status for a reached time limit: success after the limit is TIMEOUT
    (src/slurmctld/job_mgr.c, job_complete). A value that does not fit becomes exit code 255, never
    success and never signal 127, which Slurm takes for success.
    """
    if outcome.out_of_memory:
        return OUT_OF_MEMORY
    if outcome.signal:
        return outcome.signal if 0 < outcome.signal <= LAST_SIGNAL else LAST_EXIT_CODE << 8
    return (outcome.exit_code if 0 <= outcome.exit_code <= LAST_EXIT_CODE else LAST_EXIT_CODE) << 8


def protocol_for(release: tuple[int, int]) -> int:
    """Return the protocol version for a Slurm release; unknown newer ones accept our newest."""
    for since, protocol in PROTOCOLS:
        if release >= since:
            return protocol
    return PROTOCOLS[-1][1]


def message(
    protocol: int, token: str, job_id: JobId, outcome: Outcome, sluid: Sluid | None
) -> bytes:
    """Return the whole message, starting with its length."""
    status = wait_status(outcome)
    if protocol >= HAS_STEP_ID:
        body = _BODY.pack(sluid_number(sluid) if sluid else 0, job_id, NO_VAL, NO_VAL, status)
    else:
        body = _OLD_BODY.pack(job_id, status)
    return framed(protocol, token, REQUEST_COMPLETE_JOB_ALLOCATION, body)


def framed(protocol: int, token: str, kind: int, body: bytes) -> bytes:
    """Return a message of any kind to slurmctld: length, header, token, body."""
    header = _HEADER.pack(protocol << 8, 0, kind, len(body), 0, 0, socket.AF_UNSPEC)
    content = b"".join((header, _LENGTH.pack(AUTH_JWT), _text(token), _text(""), body))
    return _LENGTH.pack(len(content)) + content


def sluid_number(sluid: Sluid) -> int:
    """Decode a sluid: `s` and 13 digits of Crockford's base 32 (src/common/sluid.c).

    Raises ValueError if it is not a sluid.
    """
    if len(sluid) != SLUID_LENGTH or sluid[0] != "s" or not set(sluid[1:]).issubset(_DIGITS):
        raise ValueError(f"expected a sluid, s and 13 digits: {sluid!r}")
    number = 0
    for digit in sluid[1:]:
        number = number << 5 | _DIGITS.index(digit)
    if number >> _SLUID_BITS:
        raise ValueError(f"expected a sluid of {_SLUID_BITS} bits: {sluid!r}")
    return number


def return_code(content: bytes) -> int:
    """Decode a response (without its length): a Slurm error number, or 0.

    Raises Malformed if it is not such a response.
    """
    try:
        _, _, kind, length = _REPLY_HEADER.unpack_from(content)
        if kind == RESPONSE_SLURM_RC and length == _RETURN_CODE.size:
            (code,) = _RETURN_CODE.unpack_from(content, len(content) - length)
            return int(code)
    except struct.error as error:
        raise Malformed(OPERATION, f"slurmctld's response is truncated: {error}") from error
    raise Malformed(OPERATION, f"slurmctld answered with message type {kind}, length {length}")


async def _ask(controller: ControllerHost, request: bytes) -> int:
    where = str(controller)
    try:
        async with asyncio.timeout(controller.timeout_s):
            reader, writer = await asyncio.open_connection(
                controller.host,
                controller.port,
                ssl=controller.tls.context if controller.tls else None,
            )
    except OSError as error:  # TimeoutError and SSLError are some
        if controller.tls:
            controller.tls.reload()
        raise Unavailable(OPERATION, f"cannot reach {where}: {error!r}") from error
    try:
        async with asyncio.timeout(controller.timeout_s):
            writer.write(request)
            (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
            if length > LONGEST_REPLY:
                raise Malformed(OPERATION, f"{where} announces a response of {length} bytes")
            content = await reader.readexactly(length)
    except TimeoutError as error:
        raise LostReply(
            OPERATION, f"no response from {where} within {controller.timeout_s:g} s"
        ) from error
    except (OSError, EOFError) as error:
        raise LostReply(OPERATION, f"{where} closed the connection: {error!r}") from error
    finally:
        writer.close()
    code = return_code(content)
    if code in IN_STANDBY:
        raise InStandby(OPERATION, f"{where} is not in charge", error_number=code)
    if code == AUTHENTICATION:
        raise Unauthorized(OPERATION, f"{where} does not accept our token", error_number=code)
    return code


def _worst(failures: Sequence[Unavailable | Malformed]) -> Unavailable | Malformed:
    """Return one failure of the most informative kind, with the messages of all."""
    kinds = (InStandby, LostReply, Malformed, Unavailable)
    kind = next(kind for kind in kinds if any(isinstance(failure, kind) for failure in failures))
    worst = next(failure for failure in failures if isinstance(failure, kind))
    if len(failures) == 1:
        return worst
    return kind(
        OPERATION, "; ".join(failure.words for failure in failures), error_number=worst.error_number
    )


def _text(text: str) -> bytes:
    return _LENGTH.pack(len(text) + 1) + text.encode("ascii") + b"\0" if text else _LENGTH.pack(0)
