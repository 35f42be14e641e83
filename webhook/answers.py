"""Encode responses for the admission API (`admission.k8s.io/v1 AdmissionReview`).

Unreadable input gets a response that kube-apiserver can show: a refusal if the request's uid is
known, else a `Status`.
"""

import base64
from collections.abc import Sequence
from http import HTTPStatus

import msgspec

from bridge.domain.admission.review import Verdict
from slurmruntime.values.faults import Fault, one_line, published
from webhook.wire import API_VERSION


def answer(uid: str, verdict: Verdict, kind: str = "Pod") -> bytes:
    """Encode the verdict on an object of this kind.

    Each fault is also a separate cause, which kubectl shows on a line of its own.
    """
    response: dict[str, object] = {"uid": uid, "allowed": verdict.is_allowed}
    if verdict.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(verdict.patch)).decode()
    if verdict.warnings:
        response["warnings"] = verdict.warnings
    if verdict.faults:
        response["status"] = _invalid(verdict.faults, kind)
    return msgspec.json.encode(
        {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}
    )


def refusal(uid: str, why: str, code: HTTPStatus = HTTPStatus.BAD_REQUEST) -> bytes:
    """Encode a refusal of an object that is unreadable or could not be reviewed."""
    response = {"uid": uid, "allowed": False, "status": _failure(code, why)}
    return msgspec.json.encode(
        {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}
    )


def status(code: HTTPStatus, why: str) -> bytes:
    """Encode an error as the API's own `Status`, whose message kube-apiserver passes on."""
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Status"} | _failure(code, why))


def _failure(code: HTTPStatus, why: str) -> dict[str, object]:
    reason = code.phrase.replace(" ", "")
    return {"status": "Failure", "code": code.value, "reason": reason, "message": published(why)}


def _invalid(faults: Sequence[Fault], kind: str) -> dict[str, object]:
    return {
        "status": "Failure",
        "code": HTTPStatus.UNPROCESSABLE_ENTITY.value,
        "reason": "Invalid",
        "message": one_line(faults),
        "details": {
            "kind": kind,
            "causes": [
                {
                    "reason": "FieldValueInvalid",
                    "field": fault.path,
                    "message": published(fault.message),
                }
                for fault in faults
            ],
        },
    }
