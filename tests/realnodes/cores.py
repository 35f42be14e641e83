"""Which processors a pod's containers may use, by their own word, and which Slurm gave its job."""

from bridge.domain.model.cores import cpu_list
from tests.realnodes.containers import STARTS_S, Containers
from tests.servers import wait_until

ONE_CPU = {"cpu": "1", "memory": "64Mi"}


def inside(containers: Containers, name: str, container: str = "c0") -> frozenset[int]:
    """The processors of a container, as its first process sees them."""
    where = ("-n", containers.namespace, "exec", name, "-c", container)
    read = ("--", "grep", "Cpus_allowed_list", "/proc/1/status")
    said = containers.sandbox.kubectl(*where, *read)
    return cpu_list.parse(said.split()[-1]) or frozenset()


def given(containers: Containers, name: str) -> frozenset[int]:
    """What Slurm gave a pod's job: CPU_IDs."""
    said = containers.sandbox.run("scontrol", "show", "job", "-d", containers.job_of(name))
    found = next(word for word in said.split() if word.startswith("CPU_IDs="))
    return cpu_list.parse(found.partition("=")[2]) or frozenset()


def has_its_own(containers: Containers, name: str) -> None:
    """Wait until a pod has the very processors of its job."""
    wanted = given(containers, name)
    assert wanted
    wait_until(lambda: inside(containers, name) == wanted, STARTS_S, sandbox=containers.sandbox)
