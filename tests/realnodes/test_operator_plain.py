"""Workers without privileges on real kubelets: in a namespace that takes no privileged pods, jobs run as their users and end when they are to."""

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from sandbox.image.slurm import SlurmImage
from sandbox.operator import demo
from tests.realnodes import slurm_objects
from tests.servers import running_sandbox, wait_until

pytestmark = pytest.mark.real_all

NAMESPACE = "plain"
STARTS_S = 180.0
ENDS_S = 60.0
OUT = "/tmp/out"  # noqa: S108  # of a container


@dataclass(frozen=True, slots=True)
class PlainSlurm:
    """A Slurm whose workers have the profile plain."""

    sandbox: Sandbox

    def as_root(self, worker: str, *command: str) -> str:
        """Run a command as root in a worker; "" if it fails."""
        where = ("-n", NAMESPACE, "exec", worker, "-c", "slurmd", "--")
        try:
            return self.sandbox.kubectl(*where, *command)
        except SandboxError:
            return ""


@pytest.fixture(scope="module")
def slurm(slurm_images: tuple[SlurmImage, ...]) -> Iterator[PlainSlurm]:
    with running_sandbox(replace(demo.SHAPE, real_nodes=2)) as sandbox:
        objects = [copy.deepcopy(each) for each in slurm_objects.OBJECTS]
        for manifest in objects:
            for field in ("accountingRef", "configFileRefs", "extraConf"):
                manifest.get("spec", {}).pop(field, None)
            if manifest["kind"] == "NodeSet":
                manifest["metadata"]["annotations"] = {"slurm-bridge.dev/worker-profile": "plain"}
        sandbox.kubectl("create", "namespace", NAMESPACE)
        level = "pod-security.kubernetes.io/enforce=baseline"
        sandbox.kubectl("label", "namespace", NAMESPACE, level)
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        sandbox.kubectl("-n", NAMESPACE, "apply", "-f", "-", stdin=listed)
        found = PlainSlurm(sandbox)
        wait_until(
            lambda: found.as_root("workers-0", "sinfo", "-h", "-o", "%D %t") == "2 idle\n",
            STARTS_S,
            sandbox=sandbox,
        )
        yield found


def test_jobs_run_as_their_users_and_are_cancelled_with_all_they_have_started(
    slurm: PlainSlurm,
) -> None:
    assert {"workers-0", "workers-1"} == {
        *slurm.as_root("workers-0", "srun", "-N2", "hostname").split()
    }
    wrapped = "--wrap=id -un; grep CapEff /proc/self/status; sleep 600 & sleep 600"
    become = ("setpriv", "--reuid=games", "--regid=games", "--clear-groups")
    asked = ("sbatch", "--parsable", "--chdir=/", f"--output={OUT}", "-w", "workers-1", wrapped)
    job = slurm.as_root("workers-0", *become, *asked).strip()
    wait_until(
        lambda: slurm.as_root("workers-1", "cat", OUT).split() == ["games", "CapEff:", "0" * 16],
        ENDS_S,
        sandbox=slurm.sandbox,
    )
    assert slurm.as_root("workers-1", "pgrep", "-u", "games")
    slurm.as_root("workers-0", "scancel", job)
    state = ("squeue", "-h", "--states=all", "-j", job, "-o", "%T")
    wait_until(
        lambda: slurm.as_root("workers-0", *state) == "CANCELLED\n", ENDS_S, sandbox=slurm.sandbox
    )
    wait_until(
        lambda: not slurm.as_root("workers-1", "pgrep", "-u", "games"),
        ENDS_S,
        sandbox=slurm.sandbox,
    )


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("mount -t tmpfs none /mnt", id="mount"),
        pytest.param("mknod /root/device b 7 0", id="a device of the machine"),
        pytest.param("echo 1 > /proc/sys/kernel/sysrq", id="the machine's kernel"),
        pytest.param("unshare --mount true", id="new namespaces"),
    ],
)
def test_root_in_a_job_is_not_root_on_the_machine(slurm: PlainSlurm, command: str) -> None:
    job = ("srun", "-w", "workers-1", "bash", "-c")
    assert "0\n" == slurm.as_root("workers-0", *job, "id -u")
    said = slurm.as_root("workers-0", *job, f"{command} && echo it worked; true")
    assert "it worked" not in said
