"""Attacks through the API server, door by door: verbs and resources, by an ordinary user.

One namespace for all of them: alice has the role `edit` there, and a pod of hers runs. Each attack must be refused
in the words given, and in the end her pod is as it was.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from sandbox import chart
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from slurmruntime.values import names
from slurmruntime.values.names import REQUEST_PREFIX
from tests.attacks import attack
from tests.integration.policed import person
from tests.integration.tampering import Scene, refusal
from tests.integration.worlds import Worlds, container
from tests.servers import fresh_namespace, wait_until

RELEASE = f"/api/v1/namespaces/{chart.NAMESPACE}"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{chart.NAMESPACE}/leases/slurm-bridge-extender"
OURS_ONLY = "labels and annotations that say what a pod asks of Slurm"
KEPT = "removed by slurm-bridge as soon as nothing of the pod is left in Slurm"
ROLE = "cannot {} resource"


@pytest.fixture(scope="module")
def scene(full_sandbox: Sandbox) -> Iterator[Scene]:
    with fresh_namespace(full_sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        worlds = Worlds(full_sandbox, name)
        with person(full_sandbox, name, "alice") as alice:
            wait_until(lambda: refusal(alice, "GET", f"{worlds.path}/pods") == "", 10)
            worlds.submit("hers", annotations={f"{REQUEST_PREFIX}timelimit": "60"}, by=alice)
            worlds.await_phase("hers", "Running")
            yield Scene(worlds, alice, shown(worlds))
        worlds.clear()


def shown(worlds: Worlds) -> dict[str, Any]:
    """What nobody but us may change."""
    metadata = worlds.await_pod("hers", bool)["metadata"]
    keys = ("labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp")
    return {key: metadata.get(key) for key in keys}


@pytest.fixture(autouse=True)
def unharmed(scene: Scene) -> Iterator[None]:
    yield
    assert scene.before == shown(scene.worlds)


@pytest.mark.parametrize(
    ("path", "body", "kind", "words"),
    [
        attack(
            "server-side apply",
            "take a label of ours over by server-side apply with force",
            "policy `keys` judges the result, however it was written",
            "{hers}?fieldManager=alice&force=true",
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "hers", "labels": {names.JOB_ID_LABEL: "999999"}},
            },
            "apply",
            OURS_ONLY,
        ),
        attack(
            "replace all annotations",
            "replace all annotations by a strategic merge patch",
            "policy `keys` judges the result, however it was written",
            "{hers}",
            {"metadata": {"annotations": {"$patch": "replace", "mine": "x"}}},
            "strategic-merge",
            OURS_ONLY,
        ),
        attack(
            "delete from a primitive list",
            "remove the finalizer by `$deleteFromPrimitiveList`",
            "policy `keys` judges the result, however it was written",
            "{hers}",
            {"metadata": {"$deleteFromPrimitiveList/finalizers": [names.FINALIZER]}},
            "strategic-merge",
            KEPT,
        ),
        attack(
            "JSON patch of all metadata",
            "remove all finalizers by a JSON patch",
            "policy `keys` judges the result, however it was written",
            "{hers}",
            [{"op": "remove", "path": "/metadata/finalizers"}],
            "json",
            KEPT,
        ),
        attack(
            "a requester",
            "name somebody else as the requester of a running pod",
            "policy `keys`",
            "{hers}",
            {"metadata": {"annotations": {names.REQUESTER_ANNOTATION: "system:admin"}}},
            "merge",
            OURS_ONLY,
        ),
        attack(
            "an operator's word",
            "say as a user that a lost job may be let go",
            "policy `keys`: only break glass may",
            "{hers}",
            {"metadata": {"annotations": {names.WHEN_LOST_ANNOTATION: "let-go"}}},
            "merge",
            OURS_ONLY,
        ),
        attack(
            "a bigger grant",
            "write a bigger grant on a running pod, to have it requested if the job is lost",
            "policy `keys`",
            "{hers}",
            {"metadata": {"annotations": {names.GRANT_ANNOTATION: "{}"}}},
            "merge",
            OURS_ONLY,
        ),
        attack(
            "another workload",
            "join somebody else's running gang by its workload annotation",
            "policy `keys`",
            "{hers}",
            {"metadata": {"annotations": {names.WORKLOAD_ANNOTATION: "Job/x", "x": "y"}}},
            "merge",
            OURS_ONLY,
        ),
        attack(
            "resize",
            "grow a running pod by its subresource resize",
            "role, and policy `resize`",
            "{hers}/resize",
            {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "4"}}}]}},
            "strategic-merge",
            ROLE.format("patch"),
        ),
        attack(
            "another job's owner",
            "make a running pod somebody's Job's",
            "policy `keys`",
            "{hers}",
            {
                "metadata": {
                    "ownerReferences": [
                        {"apiVersion": "batch/v1", "kind": "Job", "name": "theirs", "uid": "1"}
                    ]
                }
            },
            "merge",
            "gets no other owner after CREATE",
        ),
        attack(
            "metadata by ephemeralcontainers",
            "change labels through the subresource ephemeralcontainers",
            "role, and the API server takes nothing but the containers from there",
            "{hers}/ephemeralcontainers",
            {"metadata": {"labels": {names.JOB_ID_LABEL: "999999"}}},
            "strategic-merge",
            ROLE.format("patch"),
        ),
        attack(
            "the status",
            "report the end of one's own pod through pods/status",
            "role",
            "{hers}/status",
            {"status": {"phase": "Failed"}},
            "merge",
            ROLE.format("patch"),
        ),
        attack(
            "the label of the namespace",
            "take the label off one's own namespace",
            "role",
            "{ns}",
            {"metadata": {"labels": {names.ENABLED_LABEL: None}}},
            "merge",
            ROLE.format("patch"),
        ),
        attack(
            "leave to evict",
            "give leave to evict many pods, on slurm-bridge's own namespace",
            "role",
            RELEASE,
            {"metadata": {"annotations": {names.EVICT_UNTIL_ANNOTATION: "2099-01-01T00:00:00Z"}}},
            "merge",
            ROLE.format("patch"),
        ),
        attack(
            "the lease",
            "become the leader by writing the lease",
            "role",
            LEASE,
            {"spec": {"holderIdentity": "alice"}},
            "merge",
            ROLE.format("patch"),
        ),
        attack(
            "the settings",
            "change our settings in their ConfigMap",
            "role",
            f"{RELEASE}/configmaps/slurm-bridge-config",
            {"data": {"config.yaml": ""}},
            "merge",
            ROLE.format("patch"),
        ),
        attack(
            "the webhook",
            "have the API server ask another webhook",
            "role",
            f"{ADMISSION}/mutatingwebhookconfigurations/slurm-bridge",
            {"webhooks": []},
            "merge",
            ROLE.format("patch"),
        ),
        attack(
            "a policy's binding",
            "turn a policy into a warning",
            "role",
            f"{ADMISSION}/validatingadmissionpolicybindings/slurm-bridge-keys",
            {"spec": {"validationActions": ["Warn"]}},
            "merge",
            ROLE.format("patch"),
        ),
        attack(
            "a node of one's own",
            "hand any node to Slurm, or take it away, by its label",
            "role",
            "/api/v1/nodes/node-0",
            {"metadata": {"labels": {names.EXTERNAL_NODE_LABEL: None}}},
            "merge",
            ROLE.format("patch"),
        ),
        attack(
            "a node's size",
            "report another size of a node through nodes/status",
            "role",
            "/api/v1/nodes/node-0/status",
            {"status": {"allocatable": {"cpu": "1000"}}},
            "merge",
            ROLE.format("patch"),
        ),
    ],
)
def test_an_ordinary_user_changes_nothing_of_ours(
    scene: Scene, path: str, body: object, kind: str, words: str
) -> None:
    said = scene.tried("PATCH", path, body, kind)

    assert words in said


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        attack(
            "bind",
            "bind a pod, with annotations that the API server copies to it",
            "role",
            "POST",
            "{hers}/binding",
            {"metadata": {"name": "hers"}, "target": {"kind": "Node", "name": "node-1"}},
            ROLE.format("create"),
        ),
        attack(
            "delete all",
            "delete all pods of slurm-bridge itself",
            "role",
            "DELETE",
            f"{RELEASE}/pods",
            None,
            ROLE.format("deletecollection"),
        ),
        attack(
            "a pod among ours",
            "run a pod in slurm-bridge's own namespace, which no policy judges",
            "role",
            "POST",
            f"{RELEASE}/pods",
            {"metadata": {"name": "x"}, "spec": {"containers": [container()]}},
            ROLE.format("create"),
        ),
        attack(
            "the token",
            "read Slurm's token from its Secret",
            "role",
            "GET",
            f"{RELEASE}/secrets/slurm-token",
            None,
            ROLE.format("get"),
        ),
        attack(
            "a token of our account",
            "have a token of our service account issued",
            "role",
            "POST",
            f"{RELEASE}/serviceaccounts/slurm-bridge-extender/token",
            {"spec": {"expirationSeconds": 600}},
            ROLE.format("create"),
        ),
        attack(
            "by proxy",
            "reach our health ports through the API server",
            "role",
            "GET",
            f"{RELEASE}/services/slurm-bridge-webhook/proxy/metrics",
            None,
            ROLE.format("get"),
        ),
        attack(
            "a policy less",
            "delete a policy",
            "role",
            "DELETE",
            f"{ADMISSION}/validatingadmissionpolicies/slurm-bridge-bypass",
            None,
            ROLE.format("delete"),
        ),
    ],
)
def test_an_ordinary_user_reaches_nothing_of_ours(
    scene: Scene, method: str, path: str, body: object, words: str
) -> None:
    assert words in scene.tried(method, path, body)


@pytest.mark.parametrize(
    "who",
    [
        attack(
            "the extender",
            "impersonate the extender's service account",
            "role",
            f"--as=system:serviceaccount:{chart.NAMESPACE}:slurm-bridge-extender",
        ),
        attack(
            "break glass",
            "impersonate the break-glass group",
            "role",
            "--as-group=slurm-bridge:break-glass",
        ),
        attack("a kubelet", "impersonate a kubelet", "role", "--as=system:node:node-0"),
    ],
)
def test_nobody_is_somebody_else(scene: Scene, full_sandbox: Sandbox, who: str) -> None:
    alice = full_sandbox.user_kubeconfig("alice")
    name = () if who.startswith("--as=") else ("--as=alice",)

    with pytest.raises(SandboxError, match="cannot impersonate"):
        full_sandbox.kubectl(f"--kubeconfig={alice}", who, *name, "get", "--raw", "/api/v1/pods")


@pytest.mark.parametrize(
    "kept",
    [
        attack(
            "all",
            "restore a placed pod from a backup, with job id, node, grant and finalizer",
            "policy `bypass`: a new pod has none of it",
            ("nodeName", "affinity"),
        ),
        attack(
            "without its node",
            "restore a placed pod from a backup that has left out its node",
            "policy `bypass`: a new pod has none of it",
            (),
        ),
    ],
)
def test_a_pod_is_not_placed_by_a_backup(scene: Scene, kept: tuple[str, ...]) -> None:
    pod = scene.worlds.await_pod("hers", bool)
    metadata = {key: pod["metadata"][key] for key in ("labels", "annotations", "finalizers")}
    spec = {k: v for k, v in pod["spec"].items() if k in kept or k not in ("nodeName", "affinity")}
    body = {"metadata": {**metadata, "name": "again"}, "spec": spec}

    said = scene.tried("POST", "{ns}/pods", body)

    assert "denied" in said
    assert scene.worlds.pod("again") is None
