"""What can go wrong with the API server, told apart by what the caller should do about it.

    KubeError
    ├── Unavailable       no answer, or 5xx: a write may have happened; look, then try again
    │   └── TooManyRequests   429: nothing happened; try again after `retry_after_s`
    ├── Conflict          409, or a guard of our patch did not hold: the object is not as we thought; look again
    │   └── AlreadyBound      the pod has another node for good
    ├── NotFound          404
    ├── Gone              410: that resourceVersion or continue token is too old; list again
    ├── Unauthorized      401: our credentials are no good
    ├── Forbidden         403: RBAC, an admission policy or a quota says no
    ├── Rejected          400, 422 and every other 4xx: what we sent is wrong, or admission refuses it
    └── Malformed         the answer breaks its own schema

Classified by HTTP status and by the fields of the `Status` object, never by message text. Messages of anything that is
no `Status` (a proxy's page …) are not repeated: who knows what is in them.
"""

import msgspec

from bridge.domain import numbers
from bridge.domain.errors import PeerError


class ConfigurationError(Exception):
    """No request was made: the kubeconfig or the service account's files are missing or make no sense."""


class KubeError(PeerError):
    """A request that did not do what was asked. `str()` says what, on which path, and the API server's words."""

    def __init__(
        self,
        method: str,
        path: str,
        *,
        status: int | None = None,
        reason: str = "",
        message: str = "",
        retry_after_s: float | None = None,
        fields: frozenset[str] = frozenset(),
    ) -> None:
        answer = " ".join(str(part) for part in (status, reason) if part) or "no answer"
        super().__init__(f"{method} {path}: {answer}: {message or 'no details'}")
        self.method = method
        self.path = path
        """Without the query."""
        self.status = status
        """The HTTP status; None where no answer came."""
        self.reason = reason
        """`Status.reason`: AlreadyExists, Invalid, Expired …"""
        self.message = message
        self.retry_after_s = retry_after_s
        """What the API server asks for; None where it does not say."""
        self.fields = fields
        """Paths of what is wrong, from `Status.details.causes`: of the API server's own validation, or a webhook's."""


class Unavailable(KubeError):
    """No answer, or one that says try later (5xx). A write may have happened all the same."""

    outcome = "unavailable"
    transient = True


class TooManyRequests(Unavailable):
    """429: refused before anything happened."""

    outcome = "too_many_requests"


class NotFound(KubeError):
    """404: no such object."""

    outcome = "not_found"
    transient = True


class Conflict(KubeError):
    """The object is not as we thought: 409, or 422 because a guard of a patch (`test`, uid) did not hold."""

    outcome = "conflict"
    transient = True


class AlreadyBound(Conflict):
    """The pod is bound, and not where we wanted it."""

    transient = False


class Gone(KubeError):
    """410: the resourceVersion or continue token is older than what the API server remembers."""

    outcome = "gone"
    transient = True


class Unauthorized(KubeError):
    """401: token or certificate missing, expired or unknown."""

    outcome = "unauthorized"


class Forbidden(KubeError):
    """403: RBAC, an admission webhook or policy, or a quota."""

    outcome = "forbidden"


class Rejected(KubeError):
    """The request itself is wrong (400, 422 and the other 4xx)."""

    outcome = "rejected"


class Malformed(KubeError):
    """The API server's answer breaks its own schema; the message names the object and the path inside it."""

    outcome = "malformed"


class _Cause(msgspec.Struct):
    field: str = ""


class _Details(msgspec.Struct, rename="camel"):
    causes: list[_Cause] = []
    retry_after_seconds: int = 0


class _Status(msgspec.Struct):
    """`meta/v1 Status`, <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/>."""

    kind: str
    reason: str = ""
    message: str = ""
    code: int = 0
    details: _Details | None = None


_decode_status = msgspec.json.Decoder(_Status).decode

_BY_STATUS: dict[int, type[KubeError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    429: TooManyRequests,
}


def from_answer(
    method: str, path: str, status: int, body: bytes, retry_after: str = ""
) -> KubeError:
    """Make the error for an answer that is no 2xx.

    Args:
        method: what was asked.
        path: of what.
        status: the HTTP status.
        body: a `Status` object, usually.
        retry_after: the header of that name; only its seconds form is understood (the API server sends no other).
    """
    answer = _status(body)
    kind = _BY_STATUS.get(status) or (Rejected if 400 <= status < 500 else Unavailable)  # noqa: PLR2004  # HTTP
    if kind is Rejected and _guard_failed(method, status, answer):
        kind = Conflict
    seconds = numbers.whole(retry_after) or 0
    if answer.details is not None:
        seconds = seconds or answer.details.retry_after_seconds
    return kind(
        method,
        path,
        status=status,
        reason=answer.reason,
        message=answer.message or f"an answer of {len(body)} bytes that is no Status object",
        retry_after_s=float(numbers.seconds(seconds)) or None,
        fields=frozenset(c.field for c in answer.details.causes) if answer.details else frozenset(),
    )


def from_watch(path: str, body: bytes) -> KubeError:
    """Make the error for the `Status` of an ERROR event."""
    return from_answer("WATCH", path, _status(body).code, body)


def _status(body: bytes) -> _Status:
    try:
        answer = _decode_status(body)
    except (msgspec.DecodeError, RecursionError):
        return _Status(kind="")
    return answer if answer.kind == "Status" else _Status(kind="")


def _guard_failed(method: str, status: int, answer: _Status) -> bool:
    """Whether a 422 means that a patch met another object than it was made for.

    Seen on 1.36: a JSON patch whose `test` fails or whose path is not there gives reason Invalid without causes, while
    validation always lists causes; a merge patch with another `metadata.uid` gives a cause for that field.
    """
    if (method, status, answer.reason) != ("PATCH", 422, "Invalid") or answer.details is None:
        return False
    causes = answer.details.causes
    return not causes or any(cause.field == "metadata.uid" for cause in causes)
