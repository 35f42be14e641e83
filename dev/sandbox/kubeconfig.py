"""Self-contained kubeconfig files: credentials inside, no path to follow."""

import base64
import json
from pathlib import Path

from sandbox import pki
from sandbox.identity import Identity
from sandbox.instance import write_private


def with_certificate(
    path: Path, *, server: str, ca: bytes, client: pki.Pair, owner: Identity | None = None
) -> Path:
    """Write credentials for the name in the client certificate."""
    user = {
        "client-certificate-data": _base64(client.certificate),
        "client-key-data": _base64(client.key),
    }
    return _write(path, server=server, ca=ca, user=user, owner=owner)


def with_token_file(
    path: Path, *, server: str, ca: bytes, token_file: Path, owner: Identity | None = None
) -> Path:
    """Write credentials for the service account whose token the file holds, as in a pod.

    Clients re-read it.
    """
    return _write(path, server=server, ca=ca, user={"tokenFile": str(token_file)}, owner=owner)


def for_server(path: Path, copy: Path, *, server: str) -> Path:
    """Return the kubeconfig for this address: a copy if the original points elsewhere."""
    content = json.loads(path.read_text())
    if content["clusters"][0]["cluster"]["server"] == server:
        return path
    content["clusters"][0]["cluster"]["server"] = server
    return write_private(copy, json.dumps(content, indent=2))


def _write(
    path: Path, *, server: str, ca: bytes, user: dict[str, str], owner: Identity | None
) -> Path:
    # JSON is YAML, without escaping.
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "sandbox",
                "cluster": {"server": server, "certificate-authority-data": _base64(ca)},
            }
        ],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": "user"}}],
        "current-context": "sandbox",
    }
    return write_private(path, json.dumps(content, indent=2), owner)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
