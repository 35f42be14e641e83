"""Resource claims on a real kubelet: containers get the very devices that Slurm gave their jobs."""

from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names
from tests.realnodes import claimants as claimants_of
from tests.realnodes.claimants import PROFILE, Claimants
from tests.realnodes.containers import ENDS_S, STARTS_S, Containers
from tests.servers import fresh_namespace, running_sandbox, wait_until

NODE = "real-0"
DEVICES = 4
OPTIONS = Options(
    nodes=0,
    plain_nodes=0,
    real_nodes=1,
    real_dra=DEVICES,
    settings=(PROFILE,),
    workloads=("coscheduling",),
)
BY_CLASS = f"deviceclass.resource.kubernetes.io/{claimants_of.CLASS}"
GROUPS = "scheduling.x-k8s.io/v1alpha1"
GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
ALL = {f"device-{index:02}" for index in range(DEVICES)}


@pytest.fixture(scope="module")
def real_devices(able: None) -> Iterator[Sandbox]:
    with running_sandbox(OPTIONS) as sandbox:
        claimants_of.create_class(sandbox)
        wait_until(lambda: is_offered(sandbox), STARTS_S, sandbox=sandbox)
        yield sandbox


@pytest.fixture
def claimants(real_devices: Sandbox) -> Iterator[Claimants]:
    with fresh_namespace(real_devices, labels={names.ENABLED_LABEL: "true"}) as namespace:
        found = Claimants(Containers(real_devices, namespace))
        claimants_of.create_templates(real_devices, namespace, DEVICES)
        yield found
        found.end()


def is_offered(sandbox: Sandbox) -> bool:
    return claimants_of.is_offered(sandbox, NODE, DEVICES)


def slices(sandbox: Sandbox) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = sandbox.admin.get(f"{claimants_of.API}/resourceslices")["items"]
    return found


def test_a_container_has_the_very_devices_that_slurm_gave_its_job(claimants: Claimants) -> None:
    pods = claimants.pods
    claimants.create("first", "exec sleep 600", count=1)
    pods.runs("first")
    claimants.create("beside", "exec sleep 600", count=1)
    pods.runs("beside")
    assert {"device-00"} == claimants.inside("first") == claimants.in_slurm("first")
    assert {"device-01"} == claimants.inside("beside") == claimants.in_slurm("beside")

    claimants.sandbox.run("scancel", pods.job_of("first"))
    pods.ends("first")
    claimants.create("around", "exec sleep 600", count=2)
    pods.runs("around")

    assert {"device-00", "device-02"} == claimants.inside("around") == claimants.in_slurm("around")
    assert claimants.holds("beside", "around")


def test_the_next_one_gets_the_devices_of_who_has_ended(claimants: Claimants) -> None:
    """All devices each, so none could start beside another."""
    pods = claimants.pods
    claimants.create("cancelled", "exec sleep 600", count=DEVICES)
    pods.runs("cancelled")
    claimants.create("brief", "until [ -e /go ]; do sleep 0.1; done", count=DEVICES)
    claimants.create("last", "exec sleep 600", count=DEVICES)
    assert claimants.holds("cancelled")

    claimants.sandbox.run("scancel", pods.job_of("cancelled"))
    pods.runs("brief")
    assert claimants.holds("brief")
    claimants.sandbox.kubectl("-n", pods.namespace, "exec", "brief", "--", "touch", "/go")

    pods.runs("last")
    assert ALL == claimants.inside("brief") == claimants.inside("last")
    assert claimants.holds("last")


def test_claims_outlive_restarts_of_kubelet_and_driver(
    real_devices: Sandbox, claimants: Claimants
) -> None:
    """A kubelet that starts deletes the ResourceSlices of its node, and so does one that misses a driver.

    Its driver publishes them again a minute later, but at once if it is restarted, too.
    """
    pods = claimants.pods
    claimants.create("lasting", "exec sleep 600", count=2)
    began = pods.runs("lasting")["status"]["containerStatuses"][0]

    real_devices.end_daemon(NODE, "kubelet")
    wait_until(lambda: not slices(real_devices), STARTS_S, sandbox=real_devices)
    real_devices.end_daemon(NODE, "dra-test-driver")
    wait_until(lambda: is_offered(real_devices), STARTS_S, sandbox=real_devices)

    assert began == pods.get("lasting")["status"]["containerStatuses"][0]
    assert claimants.holds("lasting")
    claimants.create("beside", "exec sleep 600", count=2)
    pods.runs("beside")
    assert ALL - claimants.inside("lasting") == claimants.inside("beside")

    # The driver that has prepared them is not the one that lets them go.
    real_devices.run("scancel", pods.job_of("lasting"))
    pods.ends("lasting")
    wait_until(lambda: claimants.holds("beside"), ENDS_S, sandbox=real_devices)


def test_containers_that_ask_by_a_class_have_the_very_devices_that_slurm_gave(
    claimants: Claimants,
) -> None:
    """A Job and a pod with a limit and no claim: the shape of SchedMD's examples."""
    pods, script = claimants.pods, f"{claimants_of.TOLD}; exec sleep 600"
    pods.create_job("train", script, limits={BY_CLASS: "2"}, spec={"backoffLimit": 0})
    pods.create("beside", script, script, limits={BY_CLASS: "1"})
    of_job = pods.pod_of("train")
    pods.runs(of_job)
    pods.runs("beside")

    assert 2 == len(claimants.inside(of_job))
    assert claimants.in_slurm(of_job) == claimants.inside(of_job)
    first, second = (claimants.inside("beside", container) for container in ("c0", "c1"))
    assert 1 == len(first) == len(second)
    assert claimants.in_slurm("beside") == first | second
    assert ALL == first | second | claimants.inside(of_job)

    claimants.sandbox.admin.delete(
        f"/apis/batch/v1/namespaces/{pods.namespace}/jobs/train?propagationPolicy=Background"
    )
    pods.create("after", script, limits={BY_CLASS: "2"})
    pods.runs("after")
    assert claimants.in_slurm("after") == claimants.inside("after")
    assert claimants.holds("beside", "beside", "after")


def test_a_group_that_asks_by_a_class_starts_together_with_slurm_s_devices(
    claimants: Claimants,
) -> None:
    pods, script = claimants.pods, f"{claimants_of.TOLD}; exec sleep 600"
    path = f"/apis/{GROUPS}/namespaces/{pods.namespace}/podgroups"
    group = {"apiVersion": GROUPS, "kind": "PodGroup", "spec": {"minMember": 2}}
    claimants.sandbox.admin.create(path, {**group, "metadata": {"name": "ring"}})
    for name in ("m-0", "m-1"):
        pods.create(name, script, limits={BY_CLASS: "1"}, labels={GROUP_LABEL: "ring"})
    for name in ("m-0", "m-1"):
        pods.runs(name)

    assert pods.job_of("m-0") == pods.job_of("m-1")
    together = [claimants.inside("m-0"), claimants.inside("m-1")]
    assert [1, 1] == [len(each) for each in together]
    assert claimants.in_slurm("m-0") == set().union(*together)
    assert 2 == len(set().union(*together))
