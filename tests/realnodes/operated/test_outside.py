"""Parts of a Slurm outside Kubernetes, on a machine that is no node: slurmctld and slurmdbd for workers in pods, and a slurmd for a slurmctld in a pod."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from sandbox.image.slurm import SlurmImage
from sandbox.operator.serving import CGROUP_CONF, SLURM_CONF
from tests.realnodes.in_pods import OPTIONS, STARTS_S, InPods
from tests.realnodes.installed import surroundings
from tests.realnodes.operated import outside
from tests.realnodes.operated.outside import NAME, SLURM_USER, Outside
from tests.realnodes.slurm_objects import OBJECTS
from tests.servers import running_sandbox, wait_until

pytestmark = pytest.mark.real_all

JOB_S = 20
BOTH = """\
AuthType=auth/slurm
AuthInfo=use_client_ids
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
SlurmUser=slurm
"""


@dataclass(frozen=True, slots=True)
class Site:
    """A cluster with two nodes, and a machine beside it."""

    machine: Outside
    secrets: dict[str, str]
    """The keys, which all daemons share."""

    def make(self, namespace: str, *objects: dict[str, Any]) -> InPods:
        """Make the objects of a Slurm in a namespace of its own."""
        sandbox = self.machine.sandbox
        keys = [
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": f"site-auth-{name}"},
                "stringData": {f"{name}.key": text},
            }
            for name, text in self.secrets.items()
        ]
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*keys, *objects]})
        sandbox.kubectl("create", "namespace", namespace)
        sandbox.kubectl("-n", namespace, "apply", "-f", "-", stdin=listed)
        return InPods(sandbox, self.machine.images["login"], namespace)


@pytest.fixture(scope="module")
def site(slurm_images: tuple[SlurmImage, ...]) -> Iterator[Site]:
    """The machine has a slurmdbd already."""
    options = replace(OPTIONS, real_nodes=3)
    with (
        running_sandbox(options) as sandbox,
        surroundings.reachable(sandbox, "mariadb") as gateway,
    ):
        last = options.real_node_names[-1]
        machine = outside.leave(sandbox, last, slurm_images)
        found = Site(machine, {"slurm": outside.key(), "jwt": outside.key()})
        conf = f"""\
DbdHost={NAME}
DbdAddr={machine.address}
{BOTH}StorageType=accounting_storage/mysql
StorageHost={gateway}
StoragePort={sandbox.instance.ports["mariadb"]}
StorageUser=slurm
StorageLoc=outside
StoragePass=any
"""
        machine.run("slurmdbd", {"slurmdbd.conf": conf, **keys(found)}, user=SLURM_USER)
        yield found


def keys(site: Site) -> dict[str, str]:
    return {f"{name}.key": text for name, text in site.secrets.items()}


def accounting(site: Site) -> dict[str, Any]:
    """An Accounting whose slurmdbd is on the machine."""
    where = {"host": site.machine.address, "port": 6819}
    return {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "Accounting",
        "metadata": {"name": "site"},
        "spec": {
            "external": True,
            "externalConfig": where,
            "slurmKeyRef": {"name": "site-auth-slurm", "key": "slurm.key"},
            "jwtKeyRef": {"name": "site-auth-jwt", "key": "jwt.key"},
        },
    }


def test_workers_of_pods_serve_a_slurmctld_outside_and_go_when_its_jobs_have_ended(
    site: Site,
) -> None:
    machine = site.machine
    conf = f"""\
ClusterName=outside
SlurmctldHost={NAME}({machine.address})
{BOTH}CredType=cred/slurm
{SLURM_CONF}SlurmctldParameters=enable_configless
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
MaxNodeCount=100
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={machine.address}
NodeSet=workers Feature=workers
PartitionName=all Nodes=workers Default=YES
"""
    files = {"slurm.conf": conf, "cgroup.conf": CGROUP_CONF, **keys(site)}
    machine.run("slurmctld", files, user=SLURM_USER)
    _, controller, rest_api, node_set = OBJECTS
    external = {
        "external": True,
        "externalConfig": {"host": machine.address, "port": 6817},
        **{key: controller["spec"][key] for key in ("slurmKeyRef", "jwtKeyRef", "accountingRef")},
    }
    two_workers = {**node_set, "spec": {"replicas": 2, "controllerRef": {"name": "site"}}}
    in_pods = site.make(
        "elsewhere", accounting(site), {**controller, "spec": external}, rest_api, two_workers
    )

    def squeue(job: str) -> str:
        wanted = ("-h", "--states=all", "-j", job, "-o", "%T")
        return machine.tell("slurmctld", "squeue", *wanted).strip()

    sinfo = ("sinfo", "-h", "-o", "%D %t")
    wait_until(
        lambda: machine.tell("slurmctld", *sinfo) == "2 idle\n", STARTS_S, sandbox=machine.sandbox
    )
    for kind, name, wanted in (
        ("controllers", "site", "Configured"),
        ("restapis", "site", "Ready"),
        ("nodesets", "workers", "SlurmKnown"),
    ):
        wait_until(
            lambda kind=kind, name=name, wanted=wanted: (  # type: ignore[misc]  # bound now
                in_pods.condition(kind, name, wanted)[0] == "True"
            ),
            STARTS_S,
            sandbox=machine.sandbox,
        )
    workers = in_pods.workers()
    machine.know(
        "slurmctld", {worker: in_pods.address_of(worker) for worker in workers}
    )  # for srun
    for worker in workers:
        assert worker in machine.do("slurmctld", "srun", "-w", worker, "hostname")

    submit = ("sbatch", "--parsable", "--output=/dev/null", "-w", "workers-1")
    job = machine.tell("slurmctld", *submit, f"--wrap=sleep {JOB_S}").strip()
    wait_until(lambda: squeue(job) == "RUNNING", STARTS_S, sandbox=machine.sandbox)
    in_pods.scale("workers", 0)
    wait_until(lambda: in_pods.workers() == ["workers-1"], STARTS_S, sandbox=machine.sandbox)
    wait_until(lambda: not in_pods.workers(), STARTS_S, sandbox=machine.sandbox)
    assert "COMPLETED" == squeue(job)
    said = ("sacct", "-X", "-n", "-P", "-j", job, "-o", "Cluster,State")
    wait_until(
        lambda: machine.tell("slurmctld", *said).strip() == "outside|COMPLETED",
        STARTS_S,
        sandbox=machine.sandbox,
    )


def test_a_slurmd_outside_serves_a_slurmctld_in_a_pod_whose_slurmdbd_is_outside_too(
    site: Site,
) -> None:
    machine = site.machine
    files, controller, rest_api, node_set = OBJECTS
    partition = "PartitionName=all Nodes=ALL Default=YES\n"
    spec = {**controller["spec"], "extraConf": SLURM_CONF + partition}
    one = {**node_set, "spec": {"replicas": 1, "controllerRef": {"name": "site"}}}
    in_pods = site.make(
        "slurm", files, accounting(site), {**controller, "spec": spec}, rest_api, one
    )
    wait_until(
        lambda: in_pods.run("sinfo", "-h", "-o", "%D %t") == "1 idle\n",
        STARTS_S,
        sandbox=machine.sandbox,
    )
    address = in_pods.address("slurmctld")
    internal = "site-controller-0.site-controller-internal.slurm"
    machine.run(
        "slurmd",
        {"slurm.key": site.secrets["slurm"]},
        *("-Z", "-N", NAME, "--conf-server", f"{address}:6817", "--conf", "Feature=outside"),
        hosts=f"{address} site-controller.slurm {internal}\n",
    )
    wait_until(
        lambda: in_pods.run("sinfo", "-h", "-n", NAME, "-o", "%t") == "idle\n",
        STARTS_S,
        sandbox=machine.sandbox,
    )
    job = in_pods.submit(NAME, 1)
    wait_until(lambda: (job, "COMPLETED") in in_pods.accounted(), STARTS_S, sandbox=machine.sandbox)
    # slurm-operator leaves alone what is none of its workers.
    assert ["workers-0"] == in_pods.workers()
    assert not in_pods.drained()
