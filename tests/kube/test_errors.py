"""Which error an answer becomes: by status and fields, never by words."""

import json

import pytest

from slurmruntime.kube import errors


def status(**fields: object) -> bytes:
    return json.dumps(
        {"kind": "Status", "apiVersion": "v1", "status": "Failure", **fields}
    ).encode()


@pytest.mark.parametrize(
    ("http_status", "kind"),
    [
        (400, errors.Rejected),
        (401, errors.Unauthorized),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (405, errors.Rejected),
        (409, errors.Conflict),
        (410, errors.Gone),
        (413, errors.Rejected),
        (422, errors.Rejected),
        (429, errors.TooManyRequests),
        (500, errors.Unavailable),
        (503, errors.Unavailable),
        (504, errors.Unavailable),
        (302, errors.Unavailable),
    ],
)
def test_the_status_decides(http_status: int, kind: type[errors.KubeError]) -> None:
    error = errors.from_answer("GET", "/api/v1/pods/a", http_status, status(reason="Whatever"))

    assert kind is type(error)


GUARD_FAILED = status(reason="Invalid", details={}, message="the server rejected our request")
INVALID = status(reason="Invalid", details={"causes": [{"field": "spec", "reason": "Forbidden"}]})
OTHER_UID = status(reason="Invalid", details={"causes": [{"field": "metadata.uid"}]})


@pytest.mark.parametrize(
    ("method", "body", "kind"),
    [
        pytest.param("PATCH", GUARD_FAILED, errors.Conflict, id="a test did not hold"),
        pytest.param("PATCH", OTHER_UID, errors.Conflict, id="another uid"),
        pytest.param("PATCH", INVALID, errors.Rejected, id="validation says no"),
        pytest.param("POST", GUARD_FAILED, errors.Rejected, id="no patch"),
        pytest.param("PATCH", b"", errors.Rejected, id="no Status"),
    ],
)
def test_422_is_a_conflict_where_a_guard_failed(
    method: str, body: bytes, kind: type[errors.KubeError]
) -> None:
    assert kind is type(errors.from_answer(method, "/", 422, body))


def test_the_text_says_what_where_and_why() -> None:
    error = errors.from_answer(
        "PATCH", "/api/v1/pods/a", 409, status(reason="Conflict", message="it has been modified")
    )

    assert "PATCH /api/v1/pods/a: 409 Conflict: it has been modified" == str(error)


def test_a_page_of_some_proxy_is_not_repeated() -> None:
    error = errors.from_answer("GET", "/", 502, b"<html>password=secret</html>")

    assert "GET /: 502: a response of 28 bytes that is not a Status object" == str(error)


@pytest.mark.parametrize(
    ("header", "details", "seconds"),
    [
        ("7", {}, 7.0),
        ("", {"retryAfterSeconds": 3}, 3.0),
        ("7", {"retryAfterSeconds": 3}, 7.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", {}, None),
        ("", {}, None),
    ],
)
def test_retry_after_is_passed_on(
    header: str, details: dict[str, object], seconds: float | None
) -> None:
    error = errors.from_answer("GET", "/", 429, status(details=details), header)

    assert seconds == error.retry_after_s


def test_a_bomb_instead_of_a_status_is_no_status() -> None:
    bomb = b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"

    assert isinstance(errors.from_answer("GET", "/x", 404, bomb), errors.NotFound)
