"""Checks passwords against bcrypt hashes, by the system's libcrypt.

A hash takes a tenth of a second of CPU on purpose. So it is computed in a thread, one at a time, and a
password that was right is remembered: a scrape need not wait for those who guess.
"""

import asyncio
import ctypes
import hashlib
import hmac
import os
from collections.abc import Mapping
from functools import cache
from typing import Final

MOST_WAITING: Final = 16
"""Passwords that wait to be checked; above it, more are refused at once."""

_LIBRARIES: Final = ("libcrypt.so.1", "libcrypt.so.2", None)
"""libxcrypt's two names, and the C library itself, which has it in musl."""
_SCRATCH_BYTES: Final = 256 * 1024
"""More than `struct crypt_data` takes in any of them."""
_LONGEST_BYTES: Final = 1024
_NOBODYS: Final = "$2b$10$abcdefghijklmnopqrstuu5Lo5Ym9wXcdzLkGIDDFHuJHJGDNuPQ6"
"""Compared with for unknown users, so that they take as long."""


class NoBcrypt(Exception):
    """No libcrypt here knows bcrypt."""


class Busy(Exception):
    """Too many passwords wait to be checked."""


class Passwords:
    """The users and the hashes of their passwords."""

    def __init__(self, users: Mapping[str, str]) -> None:
        """Take the users.

        Raises:
            NoBcrypt: If there are any, and their passwords could not be checked.
        """
        if users:
            _library()
        self._users = users
        self._right: dict[str, bytes] = {}
        """Digests of passwords that were right, by user."""
        self._secret = os.urandom(32)
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def admit(self, user: str, password: bytes) -> bool:
        """Check a user's password.

        Raises:
            Busy: If too many wait already.
        """
        digest = hmac.digest(self._secret, password, hashlib.sha256)
        if hmac.compare_digest(self._right.get(user, b""), digest):
            return True
        if len(password) > _LONGEST_BYTES or b"\0" in password:
            return False
        if self._waiting >= MOST_WAITING:
            raise Busy
        self._waiting += 1
        try:
            async with self._turn:
                expected = self._users.get(user, _NOBODYS).encode()
                is_right = await asyncio.to_thread(_matches, password, expected)
        finally:
            self._waiting -= 1
        if not is_right or user not in self._users:
            return False
        self._right[user] = digest
        return True


def _matches(password: bytes, expected: bytes) -> bool:
    scratch = ctypes.create_string_buffer(_SCRATCH_BYTES)
    return hmac.compare_digest(_library().crypt_r(password, expected, scratch) or b"", expected)


@cache
def _library() -> ctypes.CDLL:
    for name in _LIBRARIES:
        try:
            library = ctypes.CDLL(name)
            library.crypt_r.restype = ctypes.c_char_p
            library.crypt_r.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p)
        except (OSError, AttributeError):
            continue
        scratch = ctypes.create_string_buffer(_SCRATCH_BYTES)
        setting = b"$2b$04$" + b"." * 22
        if (library.crypt_r(b"", setting, scratch) or b"").startswith(setting):
            return library
    raise NoBcrypt("passwords cannot be checked: no libcrypt with bcrypt is installed (libxcrypt)")
