"""Just enough OpenPGP (RFC 4880) to sign an index as an archive does: RSA keys, one user id, clear-signed text."""

import base64
import hashlib
import struct
from dataclasses import dataclass, field
from datetime import datetime

from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

POSITIVE_CERTIFICATION = 0x13
CANONICAL_TEXT = 0x01
RSA, SHA256_ID = 1, 8


@dataclass(frozen=True, kw_only=True)
class Key:
    """A signing key. `valid_s`: how long from its creation; 0 is for ever."""

    created: datetime
    valid_s: int = 0
    user_id: bytes = b"Test archive <archive@example.test>"
    private: rsa.RSAPrivateKey = field(
        default_factory=lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048)
    )

    @property
    def fingerprint(self) -> str:
        return hashlib.sha1(self._hashed_body()).hexdigest().upper()  # noqa: S324  # as RFC 4880 has it

    def keyring(self) -> bytes:
        """The public key with its user id, as gpgv reads it."""
        lifetime = _subpacket(9, struct.pack(">I", self.valid_s)) if self.valid_s else b""
        may_sign = _subpacket(27, b"\x03")
        data = self._hashed_body() + b"\xb4" + struct.pack(">I", len(self.user_id)) + self.user_id
        certified = self._signature(
            POSITIVE_CERTIFICATION, data, lifetime + may_sign, made=self.created
        )
        return _packet(6, self._body()) + _packet(13, self.user_id) + certified

    def clear_sign(self, text: str, *, made: datetime) -> bytes:
        """`text`, readable, with a signature below it; it must hold neither tabs at line ends nor leading dashes."""
        lines = text.rstrip("\n").split("\n")
        signature = self._signature(CANONICAL_TEXT, "\r\n".join(lines).encode(), b"", made=made)
        armour = base64.encodebytes(signature).decode()
        return (
            "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n"
            + "\n".join(lines)
            + f"\n-----BEGIN PGP SIGNATURE-----\n\n{armour}{_crc24(signature)}\n-----END PGP SIGNATURE-----\n"
        ).encode()

    def _signature(self, kind: int, data: bytes, subpackets: bytes, *, made: datetime) -> bytes:
        created = _subpacket(2, struct.pack(">I", int(made.timestamp())))
        issuer = _subpacket(33, b"\x04" + bytes.fromhex(self.fingerprint))
        hashed = created + issuer + subpackets
        head = struct.pack(">BBBBH", 4, kind, RSA, SHA256_ID, len(hashed)) + hashed
        signed = data + head + struct.pack(">BBI", 4, 0xFF, len(head))
        number = int.from_bytes(self.private.sign(signed, padding.PKCS1v15(), SHA256()), "big")
        issuer_id = _subpacket(16, bytes.fromhex(self.fingerprint)[-8:])
        tail = struct.pack(">H", len(issuer_id)) + issuer_id + hashlib.sha256(signed).digest()[:2]
        return _packet(2, head + tail + _mpi(number))

    def _body(self) -> bytes:
        numbers = self.private.public_key().public_numbers()
        created = struct.pack(">BIB", 4, int(self.created.timestamp()), RSA)
        return created + _mpi(numbers.n) + _mpi(numbers.e)

    def _hashed_body(self) -> bytes:
        return b"\x99" + struct.pack(">H", len(self._body())) + self._body()


def _packet(tag: int, body: bytes) -> bytes:
    return bytes([0xC0 | tag, 0xFF]) + struct.pack(">I", len(body)) + body


def _subpacket(kind: int, body: bytes) -> bytes:
    return bytes([len(body) + 1, kind]) + body


def _mpi(number: int) -> bytes:
    length = number.bit_length()
    return struct.pack(">H", length) + number.to_bytes((length + 7) // 8, "big")


def _crc24(data: bytes) -> str:
    crc = 0xB704CE
    for byte in data:
        crc ^= byte << 16
        for _ in range(8):
            crc = (crc << 1) ^ (0x1864CFB if crc & 0x800000 else 0)
    return "=" + base64.b64encode(crc.to_bytes(3, "big")).decode()
