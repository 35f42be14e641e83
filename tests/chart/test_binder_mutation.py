"""The API server itself gives pods the name of those that the extender binds, exactly where the webhook would."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bridge.domain.admission import binder
from bridge.domain.admission import review as admission
from bridge.domain.request.rules import Policy
from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.chart.policed import EFFECTIVE_S, Cluster, pod, pods, policed, refusal
from tests.chart.rendering import Manifest
from tests.chart.volumes import VOLUMES
from tests.make.devices import PROFILES
from tests.make.patches import patched
from tests.servers import wait_until
from tests.webhook.recordings import edited
from webhook import wire

ON = {
    "admission": {"mutate": "policy"},
    "webhook": {"failurePolicy": "Ignore"},
    "config": {
        "placement": {"binder": "extender"},
        "controllers": {"device_profiles": PROFILES},  # without, no pod may have claims
    },
}
OURS = names.binder(names.SCHEDULER_NAME)
CLAIM = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "one"}]}


@pytest.fixture(scope="module")
def cluster(control_plane: Sandbox, helm: Path) -> Iterator[Cluster]:
    with policed(control_plane, helm, values=ON) as cluster:
        path = pods(cluster.bridged)
        wait_until(lambda: not refusal(cluster.user(), "POST", path, pod(ours=False)), EFFECTIVE_S)
        yield cluster


def asking(**spec: Any) -> Manifest:
    return pod(ours=False, spec={"automountServiceAccountToken": False, **spec})


def scheduler_by_policy(cluster: Cluster, body: Manifest) -> str:
    path = pods(cluster.bridged)
    answer = cluster.user().request("POST", path, body, params={"dryRun": "All"})
    return str(answer["spec"]["schedulerName"])


def scheduler_by_webhook(body: Manifest) -> str:
    draft = wire.draft(wire.read(edited("pod", object=json.loads(json.dumps(body)))))
    patch = admission.mutate(draft, Policy(), extender_binds=True).patch
    return str(patched(body, patch)["spec"]["schedulerName"])


@pytest.mark.parametrize("asked", ["default-scheduler", names.SCHEDULER_NAME, OURS])
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, OURS, id="plain"),
        *(
            pytest.param(
                {"volumes": [{"name": "v", kind: VOLUMES[kind]}]},
                OURS if kind in binder.PLAIN_VOLUMES else names.SCHEDULER_NAME,
                id=kind,
            )
            for kind in VOLUMES
        ),
        pytest.param(CLAIM, OURS, id="resource claim"),
    ],
)
def test_the_name_depends_on_what_kube_scheduler_must_see_to(
    cluster: Cluster, spec: Mapping[str, Any], expected: str, asked: str
) -> None:
    body = asking(schedulerName=asked, **spec)

    assert expected == scheduler_by_webhook(body)
    assert expected == scheduler_by_policy(cluster, body)


@pytest.mark.parametrize("field", ["schedulingGroup", "workloadRef"])
def test_a_pod_of_a_group_of_kube_schedulers_is_its(field: str) -> None:
    """The API server of most releases drops these fields unless a feature gate is on."""
    assert names.SCHEDULER_NAME == scheduler_by_webhook(asking(**{field: {"podGroupName": "ring"}}))
