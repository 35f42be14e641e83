"""slurm-operator from the image and the chart of `90f44191` to ours, and back by `helm rollback`.

Its NodeSet stands in the middle of a rolling update: one worker is new, and on the other a job runs.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bridge import __version__
from deploy.manifests import OPERATOR_CHART
from deploy.operator_rights import NAME
from sandbox.api import ApiError
from sandbox.client import Sandbox
from sandbox.image.slurm import SlurmImage
from sandbox.operator import images
from sandbox.options import Options
from slurmoperator.rendering.site import SLURM_USER_ID
from slurmruntime.values import names
from tests.realnodes import slurm_objects
from tests.realnodes.in_pods import NAMESPACE, STARTS_S, InPods
from tests.realnodes.installed import predecessor, surroundings
from tests.realnodes.installed.predecessor import Predecessor
from tests.realnodes.installed.release import Installed
from tests.servers import running_sandbox, wait_until

pytestmark = [pytest.mark.real_all, pytest.mark.timeout(3600)]

OPTIONS = Options(
    accounting=True,  # for its database
    bridge=False,
    nodes=0,
    plain_nodes=0,
    real_nodes=2,
    real_memory_mib=4096,
    dns=True,
)
RELEASE = "slurm-operator"
STATE = "/var/lib/kubelet/slurmctld-state"
"""A folder of the first node: slurmctld's pod may be replaced, with its jobs."""
SETTLES_S = 300.0
NODE_SET = f"/apis/slinky.slurm.net/v1beta1/namespaces/{NAMESPACE}/nodesets/workers"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


@dataclass(frozen=True, slots=True)
class Operated:
    """A Slurm of pods, and the release that serves it."""

    slurm: InPods
    release: Installed
    before: Predecessor
    values: Path

    @property
    def sandbox(self) -> Sandbox:
        return self.slurm.sandbox

    def exchange(self, step: str) -> None:
        """Upgrade the release, or roll it back; return when its new leader works."""
        waits = ("--wait", f"--timeout={SETTLES_S:.0f}s")
        if step == "back":
            self.release.helms("rollback", RELEASE, *waits)
        else:
            file = ("--values", str(self.values))
            self.release.helms("upgrade", RELEASE, str(OPERATOR_CHART), *file, *waits)
        version = predecessor.TAG if step == "back" else __version__
        wait_until(lambda: self._leads(version), SETTLES_S, sandbox=self.sandbox)

    def _leads(self, version: str) -> bool:
        """Check that a pod with the image of a version leads."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.release.namespace}/leases/{NAME}"
        holder = str(self.sandbox.admin.get(path)["spec"].get("holderIdentity") or "")
        if not holder:
            return False
        leader = f"/api/v1/namespaces/{self.release.namespace}/pods/{holder.partition('_')[0]}"
        try:
            (container,) = self.sandbox.admin.get(leader)["spec"]["containers"]
        except ApiError:
            return False
        return bool(container["image"].endswith(f":{version}"))

    def pods(self, daemon: str = "") -> dict[str, dict[str, Any]]:
        """Return the pods of Slurm, by name."""
        chosen = {"labelSelector": f"app.kubernetes.io/name={daemon}"} if daemon else {}
        return {
            pod["metadata"]["name"]: pod
            for pod in self.sandbox.admin.get(PODS, **chosen)["items"]
            if "deletionTimestamp" not in pod["metadata"]
        }

    def workers(self) -> dict[str, str]:
        """Return the uids of the workers, by name."""
        return {name: pod["metadata"]["uid"] for name, pod in self.pods("slurmd").items()}

    def is_idle(self) -> bool:
        """Check that Slurm has both workers and no job on them."""
        return self.slurm.run("sinfo", "-h", "-o", "%D %t") == "2 idle\n"

    def is_served(self) -> bool:
        """Check that all daemons are as the operator wants them, and the NodeSet knows it."""
        ready = [
            self.slurm.condition(kind, "site", "Ready")[0]
            for kind in ("controllers", "restapis", "accountings")
        ]
        return ready == ["True"] * 3 and not [
            item["metadata"]["name"]
            for kind in ("statefulsets", "deployments")
            for item in self.sandbox.admin.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/{kind}")["items"]
            if item["status"].get("observedGeneration") != item["metadata"]["generation"]
            or item["status"].get("updatedReplicas") != item["spec"]["replicas"]
            or item["status"].get("readyReplicas") != item["spec"]["replicas"]
        ]  # fmt: skip

    def restarts(self) -> dict[str, int]:
        """Return how often containers of workers have been started again, by worker."""
        return {
            name: sum(one["restartCount"] for one in pod["status"].get("containerStatuses", ()))
            for name, pod in self.pods("slurmd").items()
        }


@pytest.fixture(scope="module")
def operated(
    slurm_images: tuple[SlurmImage, ...],
    archives: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Operated]:
    folder = tmp_path_factory.mktemp("operator")
    before = predecessor.built(folder)
    values = folder / "values.yaml"
    values.write_text(json.dumps({"config": {"operator": {"image": images.pattern(slurm_images)}}}))
    with (
        running_sandbox(OPTIONS) as sandbox,
        surroundings.reachable(sandbox, "mariadb") as gateway,
    ):
        for archive in (archives["slurm-bridge"], *(image.archive for image in slurm_images)):
            sandbox.load_image(archive)
        before.load(sandbox)
        for node in OPTIONS.real_node_names:
            sandbox.kubectl("label", "node", node, f"{names.EXTERNAL_NODE_LABEL}-")
        release = Installed(sandbox, surroundings.helm())
        chart = before.tree / "deploy" / "operator" / "chart"
        created = ("--create-namespace", "--values", str(values))
        release.helms("install", RELEASE, str(chart), *created, "--wait", "--timeout=240s")
        _create_slurm(sandbox, gateway)
        found = Operated(InPods(sandbox, ""), release, before, values)
        wait_until(found.is_idle, SETTLES_S, sandbox=sandbox)
        yield found


def _create_slurm(sandbox: Sandbox, gateway: str) -> None:
    """Create a Slurm whose slurmctld finds its jobs again."""
    size = {"storage": "64Mi"}
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    first = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["real-0"]}
    volume = {
        **common,
        "capacity": size,
        "hostPath": {"path": STATE},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [first]}]}},
    }
    owner = f"{SLURM_USER_ID}:{SLURM_USER_ID}"
    sandbox.on_node("real-0", "sh", "-c", f"mkdir -p {STATE} && chown {owner} {STATE}")
    sandbox.admin.create(
        "/api/v1/persistentvolumes", {"metadata": {"name": "state"}, "spec": volume}
    )
    sandbox.kubectl("create", "namespace", NAMESPACE)
    claim = {**common, "volumeName": "state", "resources": {"requests": size}}
    sandbox.admin.create(
        f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims",
        {"metadata": {"name": "state"}, "spec": claim},
    )
    kept = {"persistence": {"enabled": True, "existingClaim": "state"}}
    database = (gateway, sandbox.instance.ports["mariadb"], NAMESPACE)
    items = [*slurm_objects.objects({}, "", kept), *slurm_objects.accounting(*database)]
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    sandbox.kubectl("-n", NAMESPACE, "apply", "-f", "-", stdin=listed)


@pytest.mark.parametrize("step", ["there", "back", "again"])
def test_no_job_is_lost_and_a_rolling_update_goes_on(operated: Operated, step: str) -> None:
    """In this order: each step begins where the one before has ended."""
    slurm, sandbox = operated.slurm, operated.sandbox
    job = slurm.run(
        *("sbatch", "--parsable", "-w", "workers-1", "--output=/dev/null"),
        *("--wrap", f"until [ -e /tmp/{step} ]; do sleep 1; done"),
    ).strip()
    wait_until(lambda: slurm.state(job) == "RUNNING", STARTS_S, sandbox=sandbox)
    first = operated.workers()
    template = {"metadata": {"annotations": {"example.test/step": step}}}
    sandbox.admin.patch(NODE_SET, {"spec": {"template": template}})
    wait_until(
        lambda: operated.workers().get("workers-0", first["workers-0"]) != first["workers-0"],
        SETTLES_S,
        sandbox=sandbox,
    )
    wait_until(
        lambda: "workers-0 idle" in slurm.run("sinfo", "-h", "-N", "-o", "%N %t").splitlines(),
        SETTLES_S,
        sandbox=sandbox,
    )
    waits = slurm.submit_wide(2, 1)
    half = operated.workers()
    assert half["workers-1"] == first["workers-1"]
    daemons = {name: pod["metadata"]["uid"] for name, pod in operated.pods().items()}

    operated.exchange(step)

    wait_until(operated.is_served, SETTLES_S, sandbox=sandbox)
    wait_until(lambda: slurm.state(job) == "RUNNING", SETTLES_S, sandbox=sandbox)
    assert slurm.condition("nodesets", "workers", "Updated")[0] == "False"
    assert half == operated.workers()
    assert {"workers-0": 0, "workers-1": 0} == operated.restarts()
    settled = {name: pod["metadata"]["uid"] for name, pod in operated.pods().items()}
    # Their templates differ: files that are tried first, requests, a PriorityClass. No worker is replaced for these.
    replaced = {name.split("-")[1] for name, uid in daemons.items() if settled.get(name) != uid}
    assert {"accounting", "controller", "restapi"} == replaced

    where = ("-n", NAMESPACE, "exec", "workers-1", "-c", "slurmd")
    sandbox.kubectl(*where, "--", "touch", f"/tmp/{step}")  # noqa: S108  # in the container
    wait_until(
        lambda: slurm.condition("nodesets", "workers", "Updated")[0] == "True",
        SETTLES_S,
        sandbox=sandbox,
    )
    wait_until(operated.is_idle, SETTLES_S, sandbox=sandbox)
    after = operated.workers()
    assert half["workers-0"] == after["workers-0"], "it has been replaced once already"
    assert half["workers-1"] != after["workers-1"]
    wait_until(
        lambda: {(job, "COMPLETED"), (waits, "COMPLETED")} <= slurm.accounted(),
        STARTS_S,
        sandbox=sandbox,
    )
    ended = {name: pod["metadata"]["uid"] for name, pod in operated.pods().items()}
    changed = {name for name in settled if settled[name] != ended.get(name)}
    assert changed == {"workers-1"}, "no daemon is restarted twice"
