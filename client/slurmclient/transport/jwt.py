"""Slurm's JSON web tokens (RFC 7519; slurm.schedmd.com/jwt.html): minting and reading them."""

import base64
import hashlib
import hmac
from datetime import UTC, datetime
from typing import Any

import msgspec


def mint(key: bytes, *, user: str, now_s: int, lifetime_s: int) -> str:
    """Return a token signed with HS256 by the cluster's `jwt_key`; `now_s` counts from 1970."""
    claims = {"exp": now_s + lifetime_s, "iat": now_s, "sun": user}
    signed = f"{_part({'alg': 'HS256', 'typ': 'JWT'})}.{_part(claims)}"
    return f"{signed}.{_base64(hmac.new(key, signed.encode(), hashlib.sha256).digest())}"


def expires_at(token: str) -> datetime | None:
    """Return when a token expires, in UTC; None if it has no such claim, or is no token."""
    return _moment(token, "exp")


def issued_at(token: str) -> datetime | None:
    """Return when a token was issued, in UTC; None if it has no such claim, or is no token."""
    return _moment(token, "iat")


def user_of(token: str) -> str:
    """Return a token's user, its claim `sun`; "" if it has no such claim, or is no token."""
    try:
        return str(_claims(token)["sun"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""


def _moment(token: str, claim: str) -> datetime | None:
    try:
        return datetime.fromtimestamp(int(_claims(token)[claim]), UTC)
    except (ValueError, KeyError, TypeError, OverflowError, OSError, RecursionError):
        return None


def _claims(token: str) -> Any:
    _, claims, _ = token.split(".")
    return msgspec.json.decode(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))


def _part(content: dict[str, object]) -> str:
    return _base64(msgspec.json.encode(content))


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
