"""The webhook's HTTP routes.

kube-apiserver calls them when a pod or a SlurmJob is created. `POST /mutate` hands the pod over and
refuses nothing; `POST /validate` lists every fault of the object after all other mutating webhooks.
If the chart says so, `POST /admit` does both for pods in one call. `POST /keep` is called for an
update that would remove our fields from a pod. Every response depends on the request alone: no other
server is asked, no state is kept.
"""

import time
from collections.abc import Callable, Mapping
from http import HTTPStatus

import structlog
from fastapi import FastAPI, Request, Response

from bridge.domain.admission import keeping, selftest
from bridge.domain.admission import review as admission
from bridge.domain.admission.review import Draft, Verdict
from bridge.domain.request.build import Defaults
from bridge.domain.request.rules import POD, Policy
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.faults import shortened
from webhook import answers, wire
from webhook.apart import BusyError, ReviewThread
from webhook.reviewing import Reviewer, ReviewMethod, ReviewResult

JSON = "application/json"

PickMethod = Callable[[Reviewer], ReviewMethod]
"""Picks the method that a route calls."""

_log = structlog.get_logger(__name__)


class PodReviewer:
    """Reviews pods by the policy in force."""

    created = POD
    kind = POD
    called = "pod"

    def __init__(
        self,
        policy: Callable[[], Policy],
        *,
        defaults: Defaults,
        scheduler_name: str,
        extender_binds: bool = False,
        self_test_namespace: str = "",
    ) -> None:
        """Keep the settings; the policy is fetched for each review.

        Args:
            extender_binds: whether `placement.binder` is the extender.
            self_test_namespace: where the controllers test the webhook; "" for nowhere.
        """
        self._policy = policy
        self._defaults = defaults
        self._scheduler_name = scheduler_name
        self._extender_binds = extender_binds
        self._self_test_namespace = self_test_namespace
        self._most_bytes = 2 * defaults.caps.object_bytes

    def mutate(self, review: wire.Review) -> ReviewResult:
        """Hand the pod to Slurm, whatever is wrong with it."""
        pod = wire.draft(review, most_bytes=self._most_bytes)
        verdict = admission.mutate(
            pod,
            self._rules(pod),
            self._scheduler_name,
            devices=self._defaults.devices,
            extender_binds=self._extender_binds,
        )
        return ReviewResult(name=f"{pod.namespace}/{pod.name}", verdict=verdict)

    def admit(self, review: wire.Review) -> ReviewResult:
        """Return everything that is wrong with the pod, else hand it to Slurm."""
        pod = wire.draft(review, most_bytes=self._most_bytes)
        verdict = admission.admit(
            pod,
            self._defaults,
            self._rules(pod),
            self._scheduler_name,
            extender_binds=self._extender_binds,
        )
        return ReviewResult(name=f"{pod.namespace}/{pod.name}", verdict=verdict)

    def validate(self, review: wire.Review) -> ReviewResult:
        """Return everything that is wrong with the pod."""
        pod = wire.draft(review, most_bytes=self._most_bytes)
        verdict = admission.validate(pod, self._defaults, self._rules(pod), self._scheduler_name)
        return ReviewResult(name=f"{pod.namespace}/{pod.name}", verdict=verdict)

    def keep(self, review: wire.Review) -> ReviewResult:
        """Restore our fields on an updated pod, which may be from before the cap was lowered."""
        pod = wire.draft(review)
        verdict = keeping.keep(
            pod,
            wire.before(review),
            self._scheduler_name,
            devices=self._defaults.devices,
        )
        return ReviewResult(name=f"{pod.namespace}/{pod.name}", verdict=verdict)

    def _rules(self, pod: Draft) -> Policy:
        is_test = self._self_test_namespace and pod.namespace == self._self_test_namespace
        return selftest.POLICY if is_test else self._policy()


def create(pods: PodReviewer, *others: Reviewer, metrics: Metrics) -> FastAPI:
    """Build the ASGI application. Objects that no reviewer handles are allowed."""
    known: dict[str, Reviewer] = {reviewer.created: reviewer for reviewer in (pods, *others)}
    only_pods: dict[str, Reviewer] = {pods.created: pods}
    apart = ReviewThread()

    async def answer(
        request: Request, known: Mapping[str, Reviewer], pick: PickMethod, *, updated: bool = False
    ) -> Response:
        began = time.perf_counter()
        response, outcome = await _review(request, known, pick, apart, updated=updated)
        metrics.webhook.review(outcome, time.perf_counter() - began)
        return response

    async def mutate(request: Request) -> Response:
        return await answer(request, known, lambda reviewer: reviewer.mutate)

    async def admit(request: Request) -> Response:
        return await answer(request, only_pods, lambda _: pods.admit)

    async def validate(request: Request) -> Response:
        return await answer(request, known, lambda reviewer: reviewer.validate)

    async def keep(request: Request) -> Response:
        return await answer(request, only_pods, lambda _: pods.keep, updated=True)

    app = FastAPI(title="slurm-bridge webhook", docs_url=None, redoc_url=None, openapi_url=None)
    # Plain routes: resolving dependencies and parsing the body took two fifths of a call's CPU.
    app.add_route("/mutate", mutate, methods=["POST"])
    app.add_route("/admit", admit, methods=["POST"])
    app.add_route("/validate", validate, methods=["POST"])
    app.add_route("/keep", keep, methods=["POST"])
    return app


async def _review(
    request: Request,
    known: Mapping[str, Reviewer],
    pick: PickMethod,
    apart: ReviewThread,
    *,
    updated: bool,
) -> tuple[Response, str]:
    content_type, body = request.headers.get("content-type", ""), await request.body()
    if content_type.partition(";")[0].strip().lower() != JSON:
        code = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
        why = f"expected content type {JSON}, found {content_type!r}"
        return Response(answers.status(code, why), code, media_type=JSON), "malformed"
    try:
        review = wire.read(body)
    except wire.NotAReviewError as error:
        code = HTTPStatus.BAD_REQUEST
        _log.warning("admission.malformed", error=str(error))
        return Response(answers.status(code, str(error)), code, media_type=JSON), "malformed"
    reviewer = known.get(review.updated if updated else review.created)
    if reviewer is None:
        return Response(answers.answer(review.uid, Verdict()), media_type=JSON), "passed"
    method = pick(reviewer)
    try:
        reviewed = method(review) if reviewer.created == POD else await apart.run(method, review)
    except wire.MalformedObjectError as error:
        _log.warning("admission.malformed", namespace=review.namespace, error=str(error))
        return Response(answers.refusal(review.uid, str(error)), media_type=JSON), "malformed"
    except BusyError as error:
        code = HTTPStatus.TOO_MANY_REQUESTS
        _log.warning("admission.busy", namespace=review.namespace, error=str(error))
        return Response(answers.refusal(review.uid, str(error), code), media_type=JSON), "busy"
    except Exception as error:  # noqa: BLE001  # a bug of ours that the requester has to see
        name = wire.name(review)
        _log.exception("admission.crashed", namespace=review.namespace, name=name)
        code = HTTPStatus.INTERNAL_SERVER_ERROR
        did = "changed" if updated else "created"
        bug = f"{type(error).__name__}: {shortened(str(error), 256)}"
        why = (
            f"{reviewer.kind} {review.namespace}/{name} was not {did}: slurm-bridge failed to review it, which is a bug"
            f" ({bug}); report it, and leave out whatever is unusual in the object"
        )
        return Response(answers.refusal(review.uid, why, code), media_type=JSON), "crashed"
    verdict = reviewed.verdict
    if verdict.faults:
        paths = [fault.path for fault in verdict.faults]
        subject = {reviewer.called: reviewed.name}
        _log.info("admission.refused", faults=paths, **subject)
    outcome = "refused" if verdict.faults else "patched" if verdict.patch else "allowed"
    answer = answers.answer(review.uid, verdict, reviewer.kind)
    return Response(answer, media_type=JSON), outcome
