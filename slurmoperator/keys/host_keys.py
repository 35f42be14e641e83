"""The SSH host keys by which users recognize the login pods: created once for each LoginSet."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from slurmoperator.keys.naming import ValueLengths
from slurmruntime.values.faults import Fault, Refusal

HostKeys = Callable[[], Awaitable[Mapping[str, bytes]]]
"""Makes new private keys and their public halves, by file name."""

_RSA_BITS: Final = 3072
"""The default of ssh-keygen(1)."""


def require(name: str, seen: ValueLengths | None, files: Sequence[str], *, has_run: bool) -> None:
    """Check the Secret with the keys, which must have these files; one that does not exist may be created, unless login pods have run.

    These may have its keys already. New keys would look like an attack to users, so a lost Secret is reported and not replaced.

    Raises:
        Refusal: it is not as expected.
    """
    if seen is None and has_run:
        text = "it is missing, and login pods run with its keys: restore it. If it is lost, delete their Deployment; new keys are then made"
        raise Refusal(Fault(f"Secret {name}", text))
    missing = [] if seen is None else [file for file in files if not seen.get(file)]
    if missing:
        text = f"it has no {', '.join(missing)}: add the files that ssh-keygen makes, or delete the Secret"
        raise Refusal(Fault(f"Secret {name}", text))


async def generate() -> Mapping[str, bytes]:
    """Return new keys; this takes a second of CPU, in another thread."""
    return await asyncio.to_thread(_generate)


def _generate() -> Mapping[str, bytes]:
    keys: Mapping[
        str, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
    ] = {
        "ssh_host_rsa_key": rsa.generate_private_key(65_537, _RSA_BITS),
        "ssh_host_ecdsa_key": ec.generate_private_key(ec.SECP256R1()),
        "ssh_host_ed25519_key": ed25519.Ed25519PrivateKey.generate(),
    }
    files: dict[str, bytes] = {}
    for name, key in keys.items():
        files[name] = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        files[f"{name}.pub"] = public + b"\n"
    return files
