"""Whether the token in a Secret will do, or another one is to be signed: pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from slurmclient.transport import jwt

_RENEWED_AT: Final = 0.8
"""The share of its lifetime after which a token is replaced, as in SchedMD's slurm-operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedToken:
    """What a token is to be."""

    user: str
    lifetime_s: int
    is_renewed: bool
    """Whether it is replaced before it ends; otherwise only if it is not what it is to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptToken:
    """The token that is to stand in the Secret."""

    token: str
    issued_at: datetime
    expires_at: datetime
    due: timedelta | None
    """When it is to be replaced, from now; None if it never is."""


def kept_or_signed(wanted: WantedToken, found: str, key: bytes, *, now: datetime) -> KeptToken:
    """Return the token that is there if it will do, else a new one.

    Args:
        wanted: what it is to be.
        found: what stands in the Secret; "" if nothing does.
        key: signs it.
        now: of this second is a new one.
    """
    if (kept := _kept(wanted, found, key, now)) is not None:
        return kept
    now_s = int(now.timestamp())
    signed = jwt.mint(key, user=wanted.user, now_s=now_s, lifetime_s=wanted.lifetime_s)
    issued = datetime.fromtimestamp(now_s, now.tzinfo)
    return _token(wanted, signed, issued, issued + timedelta(seconds=wanted.lifetime_s), now)


def _kept(wanted: WantedToken, found: str, key: bytes, now: datetime) -> KeptToken | None:
    issued, expires = jwt.issued_at(found), jwt.expires_at(found)
    if issued is None or expires is None:
        return None
    # The same claims and the same key give the same token: another user, lifetime or key would show.
    same = jwt.mint(
        key, user=wanted.user, now_s=int(issued.timestamp()), lifetime_s=wanted.lifetime_s
    )
    if found != same:
        return None
    kept = _token(wanted, found, issued, expires, now)
    is_due = kept.due is not None and kept.due <= timedelta(0)
    return None if is_due or issued > now else kept


def _token(
    wanted: WantedToken, token: str, issued: datetime, expires: datetime, now: datetime
) -> KeptToken:
    due = issued + _RENEWED_AT * (expires - issued) - now if wanted.is_renewed else None
    return KeptToken(token=token, issued_at=issued, expires_at=expires, due=due)
