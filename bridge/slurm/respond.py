"""Register an external node with slurmctld as a slurmd would, so that it counts as responding.

Whenever a user signals or suspends a job, slurmctld calls a slurmd on its nodes. On an external node
there is none, and the node is NOT_RESPONDING from then on. slurmctld never pings such a node, and
no state that an administrator can set clears the flag while jobs run there (docs/security.md lists
what was tried). A registration does: MESSAGE_NODE_REGISTRATION_STATUS, from SlurmUser or root
(`validate_node_specs` in src/slurmctld/node_mgr.c, 25.11 to 26.05).

It must not report less than slurmctld's record has, or slurmctld drains the node as invalid. So it
repeats the record: CPUs, memory, GRES. An up-time back to 1970 keeps slurmctld from believing that
the machine has rebooted, which would end its jobs. As slurmctld also takes NodeAddr from the sender,
the address has to be set again afterwards.

Layout: `_pack_node_registration_status_msg` in src/common/slurm_protocol_pack.c and
`gres_node_config_unpack` in src/interfaces/gres.c; the same from protocol 44 on.
"""

import struct
from typing import Final

from bridge.domain.model.devices import gres
from bridge.slurm import complete
from bridge.slurm.complete import HAS_STEP_ID, NO_VAL, ControllerHosts
from slurmclient.errors import TooOld, classify
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.slurm.client import SlurmClient

MESSAGE_NODE_REGISTRATION_STATUS: Final = 1002
OPERATION: Final = "node.respond"

_GRES_MAGIC: Final = 0x438A34D4
_HAS_FILE, _HAS_TYPE = 0b010, 0b100
_NO_VAL64: Final = 0xFFFFFFFFFFFFFFFE
_MOST_DISK: Final = 0xFFFFFF00

_START: Final = struct.Struct("!QQI")
_SIZES: Final = struct.Struct("!HHHHHQIIIIQ")
_GRES_HEAD: Final = struct.Struct("!HH")
_GRES: Final = struct.Struct("!IQIII")
_ENERGY: Final = struct.Struct("!QIQIQQQ")
_U8, _U16, _U32, _U64 = (struct.Struct(f"!{code}") for code in "BHIQ")
_NOTHING: Final = _U32.pack(0)
"""An absent string."""


class Responder:
    """Answers for the slurmds of external nodes."""

    def __init__(self, client: SlurmClient, controllers: ControllerHosts) -> None:
        self._client = client
        self._controllers = controllers

    async def respond(self, node: SlurmNodeFacts, now_s: int) -> None:
        """Make slurmctld consider the node as responding.

        slurmctld accepts any such message: whether it has helped shows in the next list of nodes.

        Args:
            node: the node as slurmctld has it now.
            now_s: the time, in seconds since 1970.

        Raises:
            TooOld: Slurm is older than 25.11.
            Unavailable: no slurmctld in charge could be reached; LostReply: or it did not answer.
            Unauthorized: the token was refused.
            Malformed: what answered is not slurmctld.
            SlurmError: slurmctld refuses, classified by `slurmruntime.slurm.errors`.
        """
        client = self._client
        protocol = complete.protocol_for((await client.dialect()).release_number)
        if protocol < HAS_STEP_ID:
            raise TooOld(OPERATION, "Slurm before 25.11 does not take this registration")
        with client.observed(OPERATION):
            token = await client.token.token()
            code = await self._controllers.ask(message(protocol, token, node, now_s))
            if code:
                raise classify(OPERATION, None, code)(
                    OPERATION, "slurmctld refuses", error_number=code
                )


def message(protocol: int, token: str, node: SlurmNodeFacts, now_s: int) -> bytes:
    """Return the whole message, starting with its length."""
    kinds = _gres_records(protocol, node.gres)
    cores = node.cpus // node.threads_per_core
    body = b"".join(
        (
            _START.pack(now_s, now_s, 0),
            _NOTHING * 3,  # extra, active and available features
            _text(node.name),  # the host's name, which is the node's
            _NOTHING * 2,  # instance id and type
            _text(node.name),
            _NOTHING * 2,  # architecture, reserved CPUs
            _U64.pack(0),  # reserved memory
            _NOTHING * 2,  # operating system, parameters
            _SIZES.pack(
                node.cpus,
                1,  # boards
                1,  # sockets
                cores,
                node.threads_per_core,
                node.memory_mib,
                _MOST_DISK,
                now_s,  # up since 1970
                NO_VAL,  # no hash of slurm.conf
                NO_VAL,  # no load
                _NO_VAL64,  # no free memory
            ),
            _U32.pack(0),  # no steps
            _U16.pack(0),  # no flags
            _U32.pack(len(kinds)) * 2,
            kinds,
            _ENERGY.pack(*(0,) * 7),
            _NOTHING,  # version
            _U8.pack(0),  # not a dynamic registration
            _NOTHING * 2,
        )
    )
    return complete.framed(protocol, token, MESSAGE_NODE_REGISTRATION_STATUS, body)


def _gres_records(protocol: int, listed: str) -> bytes:
    """Return a record for each kind and type, as the node was created with."""
    counts = gres.counted(listed)
    records = [_GRES_HEAD.pack(protocol << 8, len(counts))]
    for name, count in counts.items():
        kind, _, model = name.partition(":")
        flags = _HAS_FILE | (_HAS_TYPE if model else 0)
        texts = (_NOTHING, _NOTHING, _text(kind), _text(model), _NOTHING)
        records.append(_GRES.pack(_GRES_MAGIC, count, 0, flags, gres_id(kind)) + b"".join(texts))
    return b"".join(records)


def gres_id(kind: str) -> int:
    """Return slurmctld's number of a kind of GRES: its bytes, added up four abreast."""
    return sum(byte << 8 * (place % 4) for place, byte in enumerate(kind.encode())) % (1 << 32)


def _text(text: str) -> bytes:
    if not text:
        return _NOTHING
    encoded = text.encode() + b"\0"
    return _U32.pack(len(encoded)) + encoded
