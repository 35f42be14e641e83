"""Decide whether to keep the token in a Secret or sign another one: pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from slurmclient.transport import jwt

_RENEWED_AT: Final = 0.8
"""The fraction of its lifetime after which a token is replaced, as in SchedMD's slurm-operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """What a token must be."""

    user: str
    lifetime_s: int
    is_renewed: bool
    """Whether it is replaced before it expires; otherwise only if it does not match the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmToken:
    """The token that belongs in the Secret."""

    token: str
    issued_at: datetime
    expires_at: datetime
    due: timedelta | None
    """Time from now until it must be replaced; None for never."""


def keep_or_sign(request: TokenRequest, existing: str, key: bytes, *, now: datetime) -> SlurmToken:
    """Return the existing token if it is good enough, otherwise a new one, issued in this second; `existing` is "" for none."""
    if (token := _keep(request, existing, key, now)) is not None:
        return token
    now_s = int(now.timestamp())
    signed = jwt.mint(key, user=request.user, now_s=now_s, lifetime_s=request.lifetime_s)
    issued = datetime.fromtimestamp(now_s, now.tzinfo)
    return _token(request, signed, issued, issued + timedelta(seconds=request.lifetime_s), now)


def _keep(request: TokenRequest, existing: str, key: bytes, now: datetime) -> SlurmToken | None:
    issued, expires = jwt.issued_at(existing), jwt.expires_at(existing)
    if issued is None or expires is None:
        return None
    # The same claims and the same key give the same token: another user, lifetime or key would show.
    expected = jwt.mint(
        key, user=request.user, now_s=int(issued.timestamp()), lifetime_s=request.lifetime_s
    )
    if existing != expected:
        return None
    token = _token(request, existing, issued, expires, now)
    is_due = token.due is not None and token.due <= timedelta(0)
    return None if is_due or issued > now else token


def _token(
    request: TokenRequest, token: str, issued: datetime, expires: datetime, now: datetime
) -> SlurmToken:
    due = issued + _RENEWED_AT * (expires - issued) - now if request.is_renewed else None
    return SlurmToken(token=token, issued_at=issued, expires_at=expires, due=due)
