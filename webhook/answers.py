"""Answers to reviews, as the admission API wants them (`admission.k8s.io/v1 AdmissionReview`).

Unreadable input is answered so that kube-apiserver shows why: as a refusal if the request's uid is
known, else as a `Status`.
"""

import base64
from collections.abc import Sequence
from http import HTTPStatus

import msgspec

from bridge.domain.admission.review import Verdict
from slurmruntime.values.faults import Fault, shortened, told
from webhook.wire import API_VERSION


def answer(uid: str, verdict: Verdict, kind: str = "Pod") -> bytes:
    """Write the answer about an object of this kind.

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
    """Write a refusal of an object that is unreadable, or that could not be reviewed."""
    response = {"uid": uid, "allowed": False, "status": _failure(code, why)}
    return msgspec.json.encode(
        {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}
    )


def status(code: HTTPStatus, why: str) -> bytes:
    """Write an error as the API's own `Status`, whose message kube-apiserver passes on."""
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Status"} | _failure(code, why))


def _failure(code: HTTPStatus, why: str) -> dict[str, object]:
    reason = code.phrase.replace(" ", "")
    return {"status": "Failure", "code": code.value, "reason": reason, "message": shortened(why)}


def _invalid(faults: Sequence[Fault], kind: str) -> dict[str, object]:
    return {
        "status": "Failure",
        "code": HTTPStatus.UNPROCESSABLE_ENTITY.value,
        "reason": "Invalid",
        "message": told(faults),
        "details": {
            "kind": kind,
            "causes": [
                {"reason": "FieldValueInvalid", "field": fault.path, "message": fault.message}
                for fault in faults
            ],
        },
    }
