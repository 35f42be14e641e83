"""Owners are found by what a pod's reference says in full: naming another's uid gains nothing and spoils nothing."""

from dataclasses import replace
from typing import Any

from bridge.domain.workloads.kinds import coscheduling
from extender.owners import Owners
from slurmruntime.kube import errors
from slurmruntime.model.objects import KubeObject, Owner
from tests import virtual_time
from tests.make import lives as build
from tests.virtual_time import VirtualClock

JOB = KubeObject(api_version="batch/v1", kind="Job", uid="job-1", name="train")
REFERENCE = Owner(api_version="batch/v1", kind="Job", name="train", uid="job-1")
HERS = replace(build.gated(), namespace="alices", owner=REFERENCE)


class Objects:
    """Alice's Job is the only object there is."""

    async def get(self, api_version: str, kind: str, namespace: str, name: str) -> KubeObject:
        if (kind, namespace, name) == ("Job", "alices", "train"):
            return JOB
        raise errors.NotFound("GET", f"/{api_version}/{namespace}/{kind}/{name}")


def test_a_reference_to_a_uid_of_another_namespace_finds_nothing() -> None:
    theirs = replace(HERS, namespace="mallorys")

    async def main(clock: VirtualClock) -> None:
        objects: Any = Objects()
        owners = Owners(objects, clock)
        assert [JOB] == await owners.chain(HERS)
        assert [] == await owners.chain(theirs)

    virtual_time.run(main)


def test_a_reference_that_leads_nowhere_does_not_hide_the_owner_from_its_own_pods() -> None:
    forged = replace(HERS, owner=replace(REFERENCE, kind="Nothing"))

    async def main(clock: VirtualClock) -> None:
        objects: Any = Objects()
        owners = Owners(objects, clock)
        assert [] == await owners.chain(forged)
        assert [JOB] == await owners.chain(HERS)

    virtual_time.run(main)


def test_a_group_is_read_with_the_workload_behind_it_and_owns_nobody() -> None:
    served = "scheduling.k8s.io/v1alpha2"
    template = {"podGroupTemplateRef": {"workload": {"workloadName": "all"}}}
    ring = KubeObject(
        api_version=served, kind="PodGroup", uid="g", name="ring", namespace="alices", spec=template
    )
    workload = KubeObject(api_version=served, kind="Workload", uid="w", name="all")
    there = {("PodGroup", "ring"): ring, ("Workload", "all"): workload}
    member = replace(HERS, owner=None, scheduling_group="ring")

    class Groups:
        async def get(self, api_version: str, kind: str, namespace: str, name: str) -> KubeObject:
            if (api_version, namespace) != (served, "alices") or (kind, name) not in there:
                raise errors.NotFound("GET", f"/{api_version}/{namespace}/{kind}/{name}")
            return there[kind, name]

    async def main(clock: VirtualClock) -> None:
        objects: Any = Groups()
        owners = Owners(objects, clock)
        assert [ring, workload] == await owners.groups(member)
        assert [] == await owners.chain(member)
        assert [] == await owners.groups(replace(member, scheduling_group="none"))
        assert [] == await owners.groups(HERS)

    virtual_time.run(main)


def test_a_pod_waits_while_what_may_make_it_one_of_a_gang_cannot_be_read() -> None:
    """Right after an API server's restart RBAC refuses everything: nothing is split for that."""
    ring = replace(HERS, owner=None, labels={coscheduling.LABEL: "ring"})

    class Hidden:
        def __init__(self) -> None:
            self.asked = 0

        async def serves(self, _api_version: str, _kind: str) -> bool:
            self.asked += 1
            return False

        async def get(self, _version: str, kind: str, _namespace: str, name: str) -> KubeObject:
            raise errors.Forbidden("GET", f"/{kind}/{name}", message="may not")

    async def main(clock: VirtualClock) -> None:
        hidden: Any = Hidden()
        owners = Owners(hidden, clock)
        for pod, word in ((ring, "does not serve PodGroup"), (HERS, "may not")):
            for _ in range(2):
                member = await owners.membership(pod)
                assert (False, True) == (member.is_gang, bool(member.held_as))
                assert word in member.faults[0].message
        assert 1 == hidden.asked, "a thousand pods may ask the same"
        unknown = replace(HERS, owner=replace(REFERENCE, kind="Workflow"))
        assert not (await owners.membership(unknown)).faults

    virtual_time.run(main)
