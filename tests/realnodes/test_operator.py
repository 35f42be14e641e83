"""slurm-operator on real kubelets: a Slurm of pods from three objects, and workers that leave only when they are idle."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from bridge.domain import names
from bridge.domain.faults import Refused
from cluster.objects.controller import ControllerObject
from cluster.objects.loginset import LoginSetObject
from cluster.rendering.loginset import host_keys_body, login_set_bodies
from cluster.rendering.site import ControlSite, SlurmImages
from cluster.rendering.ssh import HOST_KEYS
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from sandbox.image.slurm import SlurmImage
from sandbox.options import Options
from tests.servers import running_sandbox, wait_until

pytestmark = pytest.mark.real_all

OPTIONS = Options(nodes=0, plain_nodes=0, real_nodes=2, real_memory_mib=4096, dns=True)
DEFINITIONS = Path(__file__).parents[2] / "deploy" / "operator" / "crds"
NAMESPACE = "slurm"
STARTS_S = 120.0
LEAVES_S = 120.0
JOB_S = 20
THIS_MACHINE = """\
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
"""
"""Its cgroups are of version 1, and containers have none mounted."""
OBJECTS: tuple[dict[str, Any], ...] = (
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "files"},
        "data": {"cgroup.conf": "CgroupPlugin=disabled\n"},
    },
    {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "Controller",
        "metadata": {"name": "site"},
        "spec": {
            "slurmKeyRef": {"name": "site-auth-slurm", "key": "slurm.key"},
            "jwtKeyRef": {"name": "site-auth-jwt", "key": "jwt.key"},
            "persistence": {"enabled": False},
            "configFileRefs": [{"name": "files"}],
            "extraConf": THIS_MACHINE,
        },
    },
    {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "RestApi",
        "metadata": {"name": "site"},
        "spec": {"replicas": 1, "controllerRef": {"name": "site"}},
    },
    {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "NodeSet",
        "metadata": {"name": "workers"},
        "spec": {
            "replicas": 2,
            "controllerRef": {"name": "site"},
            "partition": {"enabled": True, "config": "Default=YES"},
        },
    },
)


ROOTS = {"slurmd", "login"}
CONFINED = {
    "runAsNonRoot": True,  # without a uid: the kubelet takes the image's, and refuses root
    "readOnlyRootFilesystem": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}
OTHERS = {"login": (0, "OpenSSH_"), "slurmdbd": (1, "fatal: StorageType must be specified")}
"""How a container ends, and what it prints, when its program is asked for its version and does not print Slurm's.
slurmdbd reads its file first.
"""
_PRIVATE = Ed25519PrivateKey.generate()
HOST_KEY_TEXT = _PRIVATE.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
HOST_KEY = {
    "": _PRIVATE.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()),
    ".pub": HOST_KEY_TEXT.encode(),
}
"""sshd looks into a file for the kind of a key, not at its name."""


@dataclass(frozen=True, slots=True)
class InPods:
    """A Slurm of pods."""

    sandbox: Sandbox
    login_image: str

    def run(self, *command: str) -> str:
        """Run a command beside slurmctld; "" while there is none."""
        try:
            return self.sandbox.kubectl(
                "-n", NAMESPACE, "exec", "site-controller-0", "-c", "slurmctld", "--", *command
            )
        except SandboxError:
            return ""

    def condition(self, kind: str, name: str, wanted: str) -> tuple[str, str]:
        """Return status and message of an object's condition."""
        path = f"/apis/slinky.slurm.net/v1beta1/namespaces/{NAMESPACE}/{kind}/{name}"
        for each in self.sandbox.admin.get(path).get("status", {}).get("conditions", []):
            if each["type"] == wanted:
                return each["status"], each.get("message", "")
        return "", ""

    def drained(self) -> list[str]:
        """Return the workers that Slurm gives no more jobs."""
        lines = self.run("sinfo", "-h", "-N", "-o", "%N %T").splitlines()
        return [name for name, state in map(str.split, lines) if state.startswith("drain")]

    def state(self, job: str) -> str:
        """Return a job's state."""
        return self.run("squeue", "-h", "--states=all", "-j", job, "-o", "%T").strip()

    def workers(self) -> list[str]:
        """Return the names of the workers' pods."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        found = self.sandbox.admin.get(path, labelSelector="app.kubernetes.io/name=slurmd")
        return sorted(each["metadata"]["name"] for each in found["items"])


@pytest.fixture(scope="module")
def in_pods(
    slurm_images: tuple[SlurmImage, ...], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InPods]:
    """The objects are there, and the operator runs; nobody has waited for anything."""
    folder = tmp_path_factory.mktemp("operator")
    with running_sandbox(OPTIONS) as sandbox, ExitStack() as ending:
        for name in ("real-0", "real-1"):
            sandbox.kubectl("label", "node", name, f"{names.EXTERNAL_NODE_LABEL}-")
        for image in slurm_images:
            sandbox.load_image(image.archive)
        sandbox.kubectl("apply", "--server-side", "-f", str(DEFINITIONS))
        for definition in ("controllers", "nodesets", "restapis"):
            named = f"crd/{definition}.slinky.slurm.net"
            sandbox.kubectl("wait", "--for=condition=Established", named, "--timeout=30s")
        sandbox.kubectl("create", "namespace", NAMESPACE)
        listed = {"apiVersion": "v1", "kind": "List", "items": [*OBJECTS]}
        wait_until(lambda: applied(sandbox, listed), STARTS_S, sandbox=sandbox)
        port = free_port()
        some = slurm_images[0]
        pattern = some.name.replace(some.daemon, "{daemon}")
        (login,) = (image.name for image in slurm_images if image.daemon == "login")
        in_pods = InPods(sandbox, login)
        ending.enter_context(
            running(sandbox, operator(sandbox, pattern, folder, port), folder / "operator.log")
        )
        wait_until(
            lambda: in_pods.condition("restapis", "site", "Ready")[0] == "True",
            STARTS_S,
            sandbox=sandbox,
        )
        forward = ("-n", NAMESPACE, "port-forward", "deployment/site-restapi", f"{port}:6820")
        kubectl = str(sandbox.instance.bin / "kubectl")
        ending.enter_context(running(sandbox, (kubectl, *forward), folder / "forward.log"))
        token = in_pods.run("scontrol", "token", "username=slurm").strip().partition("=")[2]
        (folder / "token").write_text(token)
        yield in_pods


def test_three_objects_are_a_slurm_whose_workers_leave_only_when_idle(in_pods: InPods) -> None:
    sandbox = in_pods.sandbox
    wait_until(lambda: in_pods.run("sinfo", "-h", "-o", "%D %t") == "2 idle\n", STARTS_S)
    assert ["workers-0", "workers-1"] == sorted(in_pods.run("srun", "-N2", "hostname").split())
    wait_until(
        lambda: in_pods.condition("nodesets", "workers", "SlurmKnown")[0] == "True",
        STARTS_S,
        sandbox=sandbox,
    )

    jobs = {name: submit(in_pods, name) for name in in_pods.workers()}
    wait_until(lambda: in_pods.run("squeue", "-h", "-o", "%t").split() == ["R", "R"], STARTS_S)
    sandbox.kubectl("-n", NAMESPACE, "scale", "nodeset/workers", "--replicas=1")
    (going,) = wait_until(in_pods.drained, LEAVES_S, sandbox=sandbox)
    assert {*jobs} == {*in_pods.workers()}

    wait_until(lambda: in_pods.workers() == sorted({*jobs} - {going}), LEAVES_S, sandbox=sandbox)
    wait_until(
        lambda: {"COMPLETED"} == {in_pods.state(job) for job in jobs.values()},
        LEAVES_S,
        sandbox=sandbox,
    )
    wait_until(
        lambda: in_pods.condition("nodesets", "workers", "Ready")[0] == "True",
        LEAVES_S,
        sandbox=sandbox,
    )


def test_a_login_pod_reaches_the_workers(in_pods: InPods) -> None:
    """Its controller is not there yet: its objects are applied as they are rendered."""
    sandbox = in_pods.sandbox
    for body in login_bodies(in_pods):
        sandbox.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(body))
    inside = ("-n", NAMESPACE, "exec", "deployment/login", "-c", "login", "--")
    ready = ("-n", NAMESPACE, "rollout", "status", "deployment/login", f"--timeout={STARTS_S:.0f}s")
    sandbox.kubectl(*ready)

    assert sandbox.kubectl(*inside, "srun", "hostname").strip() in in_pods.workers()
    ask = "exec 3<> /dev/tcp/login/22; head -c 8 <&3"
    assert "SSH-2.0-" == in_pods.run("bash", "-c", ask)
    assert "there is a sssd.conf, but no sssd" in sandbox.kubectl(
        "-n", NAMESPACE, "logs", "deployment/login", "-c", "login"
    )
    key = sandbox.kubectl(*inside, "cat", "/etc/ssh/ssh_host_ed25519_key.pub")
    assert key.strip() == HOST_KEY_TEXT


def test_each_image_starts_as_the_user_it_names(
    in_pods: InPods, slurm_images: tuple[SlurmImage, ...]
) -> None:
    containers: list[dict[str, Any]] = [
        {
            "name": image.daemon,
            "image": image.name,
            "imagePullPolicy": "Never",
            "args": ["-V"],
            "securityContext": {} if image.daemon in ROOTS else CONFINED,
        }
        for image in slurm_images
    ]
    sandbox, path = in_pods.sandbox, f"/api/v1/namespaces/{NAMESPACE}/pods"
    spec = {"restartPolicy": "Never", "containers": containers}
    sandbox.admin.create(path, {"metadata": {"name": "versions"}, "spec": spec})
    wait_until(
        lambda: sandbox.admin.get(f"{path}/versions")["status"]["phase"] in ("Succeeded", "Failed"),
        STARTS_S,
        sandbox=sandbox,
    )

    for each in sandbox.admin.get(f"{path}/versions")["status"]["containerStatuses"]:
        daemon = each["name"]
        said = sandbox.kubectl("-n", NAMESPACE, "logs", "versions", "-c", daemon)
        code, text = OTHERS.get(daemon, (0, "slurm-wlm 26.05."))
        assert code == each["state"]["terminated"]["exitCode"], (daemon, said)
        assert text in said


def login_bodies(in_pods: InPods) -> list[dict[str, Any]]:
    """Return all that belongs to a LoginSet, with its host keys and users."""
    found = in_pods.sandbox.admin.get(
        f"/apis/slinky.slurm.net/v1beta1/namespaces/{NAMESPACE}/controllers/site"
    )
    controller = msgspec.convert(found, ControllerObject, strict=False)
    login_set = msgspec.convert(
        {
            "metadata": {"name": "login", "namespace": NAMESPACE, "uid": found["metadata"]["uid"]},
            "spec": {
                "controllerRef": {"name": "site"},
                "sssdConfRef": {"name": "users", "key": "sssd.conf"},
            },
        },
        LoginSetObject,
        strict=False,
    )
    images = {name: f"registry.test/{name}" for name in SlurmImages.__annotations__}
    site = ControlSite(images=SlurmImages(**{**images, "login": in_pods.login_image}))
    keys = {f"{file}{end}": text for file in HOST_KEYS for end, text in HOST_KEY.items()}
    bodies = login_set_bodies(login_set, controller, site)
    assert not isinstance(bodies, Refused)
    users = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "users", "namespace": NAMESPACE},
        "stringData": {"sssd.conf": "[sssd]\n"},
    }
    owned = [dict(each.body) for each in (*bodies, host_keys_body(login_set, keys))]
    for body in owned:
        # Of a LoginSet that is not there, garbage collection would delete it all.
        del body["metadata"]["ownerReferences"]
    return [users, *owned]


def submit(in_pods: InPods, worker: str) -> str:
    """Submit a batch job to a worker; return its id."""
    command = ("--parsable", "--output=/dev/null", "-w", worker, "--wrap", f"sleep {JOB_S}")
    return in_pods.run("sbatch", *command).strip()


def operator(sandbox: Sandbox, image: str, folder: Path, port: int) -> tuple[str, ...]:
    """Return the command of slurm-operator, which reaches Slurm by a port of this host."""
    (folder / "token").write_text("none yet")
    settings = {
        "kubernetes": {"kubeconfig": str(sandbox.kubeconfig), "namespace": NAMESPACE},
        "slurm": {"url": [f"http://127.0.0.1:{port}"], "token_file": str(folder / "token")},
        "operator": {"image": image, "controller": f"{NAMESPACE}/site"},
        "health": {"listen": "127.0.0.1:0"},
    }
    config = folder / "operator.yaml"
    config.write_text(yaml.safe_dump(settings))
    return (sys.executable, "-m", "cluster", "--config", str(config))


@contextmanager
def running(sandbox: Sandbox, command: tuple[str, ...], log: Path) -> Iterator[None]:
    """Run a program until the end."""
    with log.open("w") as output:
        process = subprocess.Popen(
            command, env=sandbox.env, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def applied(sandbox: Sandbox, listed: dict[str, Any]) -> bool:
    """Create the objects; what has just been defined is not served at once."""
    try:
        sandbox.kubectl("-n", NAMESPACE, "apply", "-f", "-", stdin=json.dumps(listed))
    except SandboxError:
        return False
    return True


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
