"""The extender's HTTP side: `POST /v1/filter` and `POST /v1/bind`, called by kube-scheduler.

`filter` is answered from the request alone, on a separate thread, because kube-scheduler asks for
one pod after another and waits. `bind`, which it does not wait for, looks the pod up in our cache,
refuses nodes that Slurm did not assign, and creates the Binding. Every replica answers; only the elected leader
places pods (`extender.side`).
"""

import asyncio
import time
from collections.abc import Callable

from fastapi import FastAPI, Request, Response

from bridge.domain.admission import binding as placement
from bridge.domain.model.pods import Pod
from bridge.escrow.shares import LastCheck
from bridge.kube import decode, writes
from extender import wire
from slurmruntime.kube import errors
from slurmruntime.kube.client import KubeClient
from slurmruntime.process.clock import Clock
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.ids import KubeNode, PodUid

Lookup = Callable[[PodUid], Pod | None]
"""Returns a pod from our cache, by uid."""


def create(
    *,
    kube: KubeClient,
    lookup: Lookup,
    clock: Clock,
    metrics: Metrics,
    last_check: LastCheck | None = None,
    home: asyncio.AbstractEventLoop | None = None,
) -> FastAPI:
    """Build the ASGI application.

    Args:
        kube: the client with the right to bind.
        clock: tells how long a pod has waited.
        last_check: checks whether a pod's job has ended in the meantime.
        home: event loop of kube, lookup and last_check; None for the application's own.
    """

    async def filter_nodes(request: Request) -> Response:
        began = time.perf_counter()
        try:
            pod, nodes = wire.filter_args(await request.body())
        except wire.MalformedRequest as error:
            metrics.extender.call("filter", "malformed", time.perf_counter() - began)
            return _reply(wire.filter_result((), {}, str(error)))
        verdict = placement.filter_nodes(pod, nodes)
        outcome = "found" if verdict.nodes else "refused"
        metrics.extender.call("filter", outcome, time.perf_counter() - began)
        return _reply(wire.filter_result(verdict.nodes, verdict.refused))

    async def bind(request: Request) -> Response:
        began = time.perf_counter()
        try:
            args = wire.binding_args(await request.body())
            binding = _bind(kube, lookup, last_check, args)
            pod = await (
                binding
                if home is None
                else asyncio.wrap_future(asyncio.run_coroutine_threadsafe(binding, home))
            )
        except (wire.MalformedRequest, _RefusedError) as refusal:
            metrics.extender.call("bind", "refused", time.perf_counter() - began)
            return _reply(wire.binding_result(str(refusal)))
        metrics.extender.call("bind", "bound", time.perf_counter() - began)
        metrics.pods.bound(pod.waiting_time(clock.now()).total_seconds())
        return _reply(wire.binding_result())

    app = FastAPI(title="slurm-bridge extender", docs_url=None, redoc_url=None, openapi_url=None)
    # Plain routes: no dependencies to resolve, no body to parse.
    app.add_route("/v1/filter", filter_nodes, methods=["POST"])
    app.add_route("/v1/bind", bind, methods=["POST"])
    return app


class _RefusedError(Exception):
    """The pod was not bound; kube-scheduler shows the text."""


async def _bind(
    kube: KubeClient, lookup: Lookup, last_check: LastCheck | None, args: wire.BindingArgs
) -> Pod:
    """Bind the pod; return it only after the API server has answered 201.

    If our cache does not show the pod as assigned, it is read once more: the watch may lag behind
    our own patch.

    Raises:
        _RefusedError: it was not bound.
    """
    pod = lookup(PodUid(args.PodUID))
    try:
        if placement.refuse_binding(pod, args.Node):
            pod = await decode.get_pod(kube, args.PodNamespace, args.PodName)
            pod = pod if pod.uid == args.PodUID else None
        refusal = placement.refuse_binding(pod, args.Node)
        if pod is None or refusal:
            raise _RefusedError(refusal)
        if last_check and (too_late := await last_check(pod, KubeNode(args.Node))):
            raise _RefusedError(too_late)
        await writes.bind(
            kube,
            namespace=args.PodNamespace,
            name=args.PodName,
            uid=PodUid(args.PodUID),
            kube_node=KubeNode(args.Node),
        )
    except errors.KubeError as error:
        raise _RefusedError(
            f"binding {args.PodNamespace}/{args.PodName} to {args.Node}: {error}"
        ) from error
    return pod


def _reply(body: bytes) -> Response:
    return Response(body, media_type="application/json")
