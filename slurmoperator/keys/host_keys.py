"""The keys by which users know that they have reached the right login pods: made once for a LoginSet."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from slurmoperator.keys import secrets
from slurmruntime.kube.client import KubeClient
from slurmruntime.values.faults import Fault

HostKeys = Callable[[], Awaitable[Mapping[str, bytes]]]
"""Makes new private keys and their public halves, by the names of their files."""
HostKeysBody = Callable[[Mapping[str, bytes]], Mapping[str, Any]]
"""Makes the Secret of them."""

_RSA_BITS: Final = 3072
"""The default of ssh-keygen(1)."""

_PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


async def ensure(
    kube: KubeClient,
    where: tuple[str, str],
    files: Sequence[str],
    *,
    has_run: bool,
    make: HostKeys,
    body: HostKeysBody,
) -> tuple[Fault, ...]:
    """Make the Secret if there is none, and return what is wrong with it.

    Args:
        kube: the API server.
        where: its namespace and name.
        files: that it must have.
        has_run: whether login pods may have its keys already. With others they would look like
            an attack, so a lost Secret is told and not replaced.
        make: makes keys.
        body: makes the Secret.

    Raises:
        KubeError: it was not read or not made, or nobody knows: look again.
    """
    namespace, name = where
    found = await secrets.read(kube, namespace, name)
    if found is None and has_run:
        text = "it is gone, and login pods run with its keys: restore it. If it is lost, delete their Deployment; then a new one is made"
        return (Fault(f"Secret {name}", text),)
    if found is None:
        found = await secrets.create(kube, body(await make()))
    missing = [file for file in files if not found.lengths.get(file)]
    if not missing:
        return ()
    text = f"it has no {', '.join(missing)}: add what ssh-keygen makes, or delete it"
    return (Fault(f"Secret {name}", text),)


async def generated() -> Mapping[str, bytes]:
    """Return new keys; this takes a second of CPU, in another thread."""
    return await asyncio.to_thread(_generated)


def _generated() -> Mapping[str, bytes]:
    keys: Mapping[str, _PrivateKey] = {
        "ssh_host_rsa_key": rsa.generate_private_key(65_537, _RSA_BITS),
        "ssh_host_ecdsa_key": ec.generate_private_key(ec.SECP256R1()),
        "ssh_host_ed25519_key": ed25519.Ed25519PrivateKey.generate(),
    }
    private = {name: _private(key) for name, key in keys.items()}
    return private | {f"{name}.pub": _public(key) for name, key in keys.items()}


def _private(key: _PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )


def _public(key: _PrivateKey) -> bytes:
    form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    return key.public_key().public_bytes(*form) + b"\n"
