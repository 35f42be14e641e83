"""The webhook's HTTP side.

`POST /mutate` and `POST /validate`, called by kube-apiserver when a pod is created.

There are two calls because the second sees what other webhooks have made of the pod in between.
Both are answered from the request alone: no other server is asked, no state is kept.
"""

import time
from collections.abc import Callable
from http import HTTPStatus

import structlog
from fastapi import FastAPI, Request, Response

from bridge.domain.admission import review as admission
from bridge.domain.admission.review import Draft, Verdict
from bridge.domain.request.build import Defaults
from bridge.domain.request.rules import Policy
from bridge.process.metrics import Metrics
from webhook import wire

JSON = "application/json"

_log = structlog.get_logger(__name__)


def create(
    *, defaults: Defaults, policy: Callable[[], Policy], scheduler_name: str, metrics: Metrics
) -> FastAPI:
    """Build the ASGI application; the policy is fetched for each review."""

    async def mutate(request: Request) -> Response:
        return await _answer(
            request, lambda pod: admission.mutate(pod, policy(), scheduler_name), metrics
        )

    async def validate(request: Request) -> Response:
        return await _answer(
            request,
            lambda pod: admission.validate(pod, defaults, policy(), scheduler_name),
            metrics,
        )

    app = FastAPI(title="slurm-bridge webhook", docs_url=None, redoc_url=None, openapi_url=None)
    # Plain routes: resolving dependencies and parsing the body took two fifths of a call's CPU.
    app.add_route("/mutate", mutate, methods=["POST"])
    app.add_route("/validate", validate, methods=["POST"])
    return app


async def _answer(
    request: Request, judge: Callable[[Draft], Verdict], metrics: Metrics
) -> Response:
    began = time.perf_counter()
    response, outcome = _review(
        request.headers.get("content-type", ""), await request.body(), judge
    )
    metrics.webhook.review(outcome, time.perf_counter() - began)
    return response


def _review(
    content_type: str, body: bytes, judge: Callable[[Draft], Verdict]
) -> tuple[Response, str]:
    """Return the answer and its one-word result."""
    if content_type.partition(";")[0].strip().lower() != JSON:
        code = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
        why = f"expected content type {JSON}, found {content_type!r}"
        return Response(wire.status(code, why), code, media_type=JSON), "malformed"
    try:
        review = wire.read(body)
    except wire.NotAReviewError as error:
        code = HTTPStatus.BAD_REQUEST
        _log.warning("admission.malformed", error=str(error))
        return Response(wire.status(code, str(error)), code, media_type=JSON), "malformed"
    if not review.is_new_pod:
        return Response(wire.answer(review.uid, Verdict()), media_type=JSON), "passed"
    try:
        pod = wire.draft(review)
    except wire.MalformedPodError as error:
        _log.warning("admission.malformed", namespace=review.namespace, error=str(error))
        return Response(wire.refusal(review.uid, str(error)), media_type=JSON), "malformed"
    verdict = judge(pod)
    if verdict.faults:
        name = f"{review.namespace}/{pod.name}"
        _log.info("admission.refused", pod=name, faults=[f.path for f in verdict.faults])
    outcome = "refused" if verdict.faults else "patched" if verdict.patch else "allowed"
    return Response(wire.answer(review.uid, verdict), media_type=JSON), outcome
