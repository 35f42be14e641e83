"""A site may call its scheduler profile what it likes; the commands read its name from the settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from bridge.domain.diagnosis.why import Stage
from slurmcli import queue, why
from slurmcli.access import Access
from slurmruntime.kube.client import KubeClient
from slurmruntime.values import names
from tests.make.peers import serving

SITE = "site-scheduler"
RELEASE = "slurm-bridge"
CREATED = datetime(2026, 1, 1, tzinfo=UTC).isoformat()


def pod(name: str, *, scheduler: str, finalizers: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": name,
            "resourceVersion": "1",
            "creationTimestamp": CREATED,
            "finalizers": list(finalizers),
        },
        "spec": {"schedulerName": scheduler, "containers": [{"name": "main"}]},
        "status": {"phase": "Pending"},
    }


PODS = (
    pod("placed", scheduler=SITE, finalizers=(names.FINALIZER,)),
    pod("moved", scheduler=SITE),
    pod("of-the-extender", scheduler=names.binder(SITE)),
    pod("other", scheduler="default-scheduler"),
)


class Api:
    """An API server with one release of ours, and pods."""

    def __init__(self, *, may_read_settings: bool) -> None:
        self._may_read_settings = may_read_settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answer(Request(scope))(scope, receive, send)

    def _answer(self, request: Request) -> JSONResponse:
        path = request.url.path
        if path.endswith("/configmaps"):
            if not self._may_read_settings:
                refusal = {"kind": "Status", "reason": "Forbidden", "code": 403, "message": "no"}
                return JSONResponse(refusal, 403)
            settings = yaml.safe_dump({"scheduler_name": SITE})
            return JSONResponse({"items": [{"data": {"config.yaml": settings}}]})
        if path.endswith("/validatingadmissionpolicybindings"):
            return JSONResponse({"items": []})
        if path.endswith("/pods"):
            _, _, name = request.query_params.get("fieldSelector", "").partition("=")
            items = [each for each in PODS if name in ("", each["spec"]["schedulerName"])]
            return JSONResponse({"metadata": {"resourceVersion": "1"}, "items": items})
        if "/pods/" in path:
            return JSONResponse(next(one for one in PODS if path.endswith(one["metadata"]["name"])))
        return JSONResponse(
            {
                "metadata": {
                    "name": "team",
                    "uid": "team",
                    "resourceVersion": "1",
                    "creationTimestamp": CREATED,
                }
            }
        )


@asynccontextmanager
async def opened(folder: Path, *, may_read_settings: bool = True) -> AsyncIterator[Access]:
    async with serving(Api(may_read_settings=may_read_settings)) as (host, port):
        content = {
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": f"http://{host}:{port}"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
        }
        (folder / "kubeconfig").write_text(yaml.safe_dump(content))
        async with KubeClient.open(
            str(folder / "kubeconfig"), request_timeout_s=5, user_agent="test"
        ) as kube:
            yield Access(kube=kube, slurm=None)


@pytest.mark.parametrize(
    ("may_read_settings", "expected"),
    [(True, {"placed", "moved", "of-the-extender"}), (False, {"placed"})],
)
async def test_queue_shows_the_pods_of_the_sites_scheduler(
    tmp_path: Path, *, may_read_settings: bool, expected: set[str]
) -> None:
    """Whoever may not read the settings sees those that carry our finalizer."""
    async with opened(tmp_path, may_read_settings=may_read_settings) as access:
        found = await queue._ask(access, "team", RELEASE)

    assert {f"Pod/{name}" for name in expected} == {entry.workload for entry in found}


async def test_why_knows_the_sites_scheduler(tmp_path: Path) -> None:
    async with opened(tmp_path) as access:
        moved = await why._ask(access, "team", "moved", RELEASE)
        bound_by_us = await why._ask(access, "team", "of-the-extender", RELEASE)
        other = await why._ask(access, "team", "other", RELEASE)

    assert Stage.NOT_OURS not in (moved.stage, bound_by_us.stage)
    assert Stage.NOT_OURS is other.stage
