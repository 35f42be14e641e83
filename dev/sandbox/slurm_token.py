"""Slurm's JSON web tokens.

HS256 with the cluster's key and three claims (slurm.schedmd.com/jwt.html).
"""

import base64
import hashlib
import hmac
import json
from datetime import datetime, timedelta


def mint(key: bytes, *, user: str, now: datetime, lifetime: timedelta) -> str:
    """Issue a token to act as `user`; root's may act as anyone."""
    issued = int(now.timestamp())
    expires = issued + int(lifetime.total_seconds())
    signed = f"{_part({'alg': 'HS256', 'typ': 'JWT'})}.{_part({'exp': expires, 'iat': issued, 'sun': user})}"
    return f"{signed}.{_base64(hmac.new(key, signed.encode(), hashlib.sha256).digest())}"


def _part(content: dict[str, object]) -> str:
    return _base64(json.dumps(content, separators=(",", ":")).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
