"""Errors of the API server, classified by what the caller should do.

    KubeError
    ├── Unavailable       no response, or 5xx: a write may have happened; read, then retry
    │   └── TooManyRequests   429: nothing happened; retry after `retry_after_s`
    ├── Conflict          409, or a guard of our patch failed: our view is stale; read again
    │   └── AlreadyBound      the pod is bound to another node, permanently
    ├── NotFound          404
    ├── Gone              410: resourceVersion or continue token too old; list again
    ├── Unauthorized      401: our credentials are invalid
    ├── Forbidden         403: denied by RBAC, an admission policy or a quota
    ├── Rejected          400, 422, any other 4xx: our request is invalid, or admission denies it
    └── Malformed         the response violates its own schema

Classified by HTTP status and the fields of the `Status` object, never by message text. A response
that is not a `Status` (a proxy's error page, for example) is never quoted: its content is unknown.
"""

import msgspec

from slurmruntime.values import numbers
from slurmruntime.values.errors import CallError


class ConfigurationError(Exception):
    """The kubeconfig or the service account's files are missing or invalid; no request was made."""


class KubeError(CallError):
    """A request failed. `str()` gives the method, the path and the API server's message."""

    may_have_happened: bool = False
    """A write may have reached the API server, or reach it yet."""

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
        """The HTTP status; None if there was no response."""
        self.reason = reason
        """`Status.reason`: AlreadyExists, Invalid, Expired …"""
        self.message = message
        self.retry_after_s = retry_after_s
        """Delay the API server asks for; None if it does not ask."""
        self.fields = fields
        """Paths of invalid fields, from `Status.details.causes`, set by the API server's validation
        or by a webhook."""


class Unavailable(KubeError):
    """No response, or a 5xx. A write may have happened nevertheless."""

    outcome = "unavailable"
    transient = True
    may_have_happened = True


class TooManyRequests(Unavailable):
    """429: rejected before anything happened."""

    outcome = "too_many_requests"
    may_have_happened = False


class NotFound(KubeError):
    """404: no such object."""

    outcome = "not_found"
    transient = True


class Conflict(KubeError):
    """Our view of the object is stale: 409, or 422 if a guard of a patch (`test`, uid) failed."""

    outcome = "conflict"
    transient = True


class AlreadyBound(Conflict):
    """The pod is bound to another node."""

    transient = False


class Gone(KubeError):
    """410: the resourceVersion or continue token is older than the API server's history."""

    outcome = "gone"
    transient = True


class Unauthorized(KubeError):
    """401: token or certificate missing, expired or unknown."""

    outcome = "unauthorized"


class Forbidden(KubeError):
    """403: RBAC, an admission webhook or policy, or a quota."""

    outcome = "forbidden"


class Rejected(KubeError):
    """The request itself is invalid (400, 422 and the other 4xx)."""

    outcome = "rejected"


class Malformed(KubeError):
    """The response violates its own schema; the message names the object and the path inside it."""

    outcome = "malformed"


class _Cause(msgspec.Struct):
    field: str = ""


class _Details(msgspec.Struct, rename="camel"):
    causes: list[_Cause] = []
    retry_after_seconds: int = 0


class _Status(msgspec.Struct):
    """`meta/v1 Status`.

    Source: <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/>.
    """

    kind: str
    reason: str = ""
    message: str = ""
    code: int = 0
    details: _Details | None = None


_decode_status = msgspec.json.Decoder(_Status).decode

_SERVED = "/api/v1/", "/apis/coordination.k8s.io/"
"""What is always served: a 404 without a Status is then a page of some proxy, and no word about an object. For other groups
the API server itself says it so if it has none; then there is no `reason`."""

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
    """Return the error for a response whose status is not 2xx.

    Args:
        retry_after: the `Retry-After` header, in seconds: the only form the API server sends.
    """
    answer = _status(body)
    kind = _BY_STATUS.get(status) or (Rejected if 400 <= status < 500 else Unavailable)  # noqa: PLR2004  # HTTP
    if kind is Rejected and _guard_failed(method, status, answer):
        kind = Conflict
    if kind is NotFound and not answer.kind and path.startswith(_SERVED):
        kind = Unavailable
    seconds = numbers.integer(retry_after) or 0
    if answer.details is not None:
        seconds = seconds or answer.details.retry_after_seconds
    return kind(
        method,
        path,
        status=status,
        reason=answer.reason,
        message=answer.message or f"a response of {len(body)} bytes that is not a Status object",
        retry_after_s=float(numbers.seconds(seconds)) or None,
        fields=frozenset(c.field for c in answer.details.causes) if answer.details else frozenset(),
    )


def from_watch(path: str, body: bytes) -> KubeError:
    """Return the error for the `Status` object of an ERROR event."""
    return from_answer("WATCH", path, _status(body).code, body)


def _status(body: bytes) -> _Status:
    try:
        answer = _decode_status(body)
    except (msgspec.DecodeError, RecursionError):
        return _Status(kind="")
    return answer if answer.kind == "Status" else _Status(kind="")


def _guard_failed(method: str, status: int, answer: _Status) -> bool:
    """Check whether a 422 means that a guard of the patch failed.

    Seen on 1.36: a JSON patch whose `test` fails or whose path is missing yields reason Invalid
    without causes, while validation always lists causes. A merge patch with a different
    `metadata.uid` yields a cause for that field.
    """
    if (method, status, answer.reason) != ("PATCH", 422, "Invalid") or answer.details is None:
        return False
    causes = answer.details.causes
    return not causes or any(cause.field == "metadata.uid" for cause in causes)
