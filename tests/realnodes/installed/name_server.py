"""A name server for pods in a cluster without CoreDNS: it knows Services, and nothing else.

    python -m tests.realnodes.installed.name_server ADDRESS KUBECONFIG

It answers a question for SERVICE.NAMESPACE.svc.cluster.local with the Service's address, and any
other with "no such name". RFC 1035, section 4.1.
"""

import socket
import sys
from pathlib import Path

from sandbox.api import Api, ApiError

PORT = 53
_ZONE = ("svc", "cluster", "local")
_A = 1
_ANSWERS, _NO_SUCH_NAME = 0x8580, 0x8583
_TTL_S = 5
_MOST_BYTES = 512


def answer(question: bytes, address: str | None) -> bytes:
    """Return the reply to a question: with the address, if it is of type A."""
    end = question.index(0, 12) + 5
    asked = question[12:end]
    found = address is not None and int.from_bytes(asked[-4:-2]) == _A
    flags = _NO_SUCH_NAME if address is None else _ANSWERS
    head = question[:2] + flags.to_bytes(2) + b"\0\1" + int(found).to_bytes(2) + b"\0\0\0\0"
    if not found or address is None:
        return head + asked
    numbers = bytes(map(int, address.split(".")))
    return head + asked + b"\xc0\x0c" + b"\0\1\0\1" + _TTL_S.to_bytes(4) + b"\0\4" + numbers


def labels(question: bytes) -> list[str]:
    """Return the name that is asked for."""
    found, at = [], 12
    while length := question[at]:
        found.append(question[at + 1 : at + 1 + length].decode("ascii").lower())
        at += 1 + length
    return found


def serve(address: str, kubeconfig: Path) -> None:
    """Answer from what the API server says now, until killed."""
    with Api(kubeconfig) as api, socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.bind((address, PORT))
        while True:
            question, asker = sock.recvfrom(_MOST_BYTES)
            sock.sendto(answer(question, _address(api, labels(question))), asker)


def _address(api: Api, name: list[str]) -> str | None:
    if tuple(name[2:]) != _ZONE:
        return None
    try:
        service = api.get(f"/api/v1/namespaces/{name[1]}/services/{name[0]}")
    except ApiError:
        return None
    address: str = service["spec"]["clusterIP"]
    return address


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]))
