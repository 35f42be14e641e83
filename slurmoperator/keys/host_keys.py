"""The SSH host keys by which users recognize the login pods: created once for each LoginSet."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from slurmoperator.keys import secrets
from slurmruntime.kube.client import KubeClient
from slurmruntime.model.objects import JsonObject
from slurmruntime.values.faults import Fault, Refusal

HostKeys = Callable[[], Awaitable[Mapping[str, bytes]]]
"""Makes new private keys and their public halves, by file name."""
HostKeysBody = Callable[[Mapping[str, bytes]], JsonObject]
"""Makes the Secret that holds the keys."""

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
) -> None:
    """Create the Secret if it does not exist.

    Args:
        where: the namespace and name of the Secret.
        has_run: whether login pods may have its keys already. New keys would look like an attack to
            users, so a lost Secret is reported and not replaced.

    Raises:
        Refusal: the Secret is not as expected.
        KubeError: the Secret was not read or not created, or that is unknown: try again.
    """
    namespace, name = where
    secret = await secrets.read(kube, namespace, name)
    if secret is None and has_run:
        text = "it is missing, and login pods run with its keys: restore it. If it is lost, delete their Deployment; new keys are then made"
        raise Refusal(Fault(f"Secret {name}", text))
    if secret is None:
        secret = await secrets.create(kube, body(await make()))
    missing = [file for file in files if not secret.get(file)]
    if missing:
        text = f"it has no {', '.join(missing)}: add the files that ssh-keygen makes, or delete the Secret"
        raise Refusal(Fault(f"Secret {name}", text))


async def generate() -> Mapping[str, bytes]:
    """Return new keys; this takes a second of CPU, in another thread."""
    return await asyncio.to_thread(_generate)


def _generate() -> Mapping[str, bytes]:
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
