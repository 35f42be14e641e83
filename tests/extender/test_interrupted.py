"""Whichever write goes wrong while the extender places pods: it ends as it would have without that.

The side, what it gathers and what it knows of nodes are the product's own, as `extender` wires them.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from bridge.domain.lifecycle.actions import (
    Action,
    Assign,
    Cancel,
    Enlist,
    Resize,
    Submit,
    Tell,
    Wait,
)
from bridge.domain.model import identities
from bridge.domain.model.identities import FirstSubmission
from slurmruntime.kube.meta import rfc3339
from slurmruntime.model import nodes
from slurmruntime.process.metrics.pods import PodMetrics
from slurmruntime.values import names
from tests.extender.placing import placing
from tests.make.apiserver import Manifest
from tests.make.devices import (
    PROFILES,
    by_class,
    claim,
    claiming,
    device_class,
    device_slice,
    made_for,
    templated,
)
from tests.make.leader import Outset
from tests.make.manifests import CLUSTER, GATED, job, kube_node, member, pod, running
from tests.make.situations import Situation, check_that_every_write_may_fail, lived_through
from tests.make.slurm import Job
from tests.make.slurm_nodes import Node
from tests.make.trouble import Fault, Trouble
from tests.virtual_time import EPOCH

pytestmark = pytest.mark.slow

FROZEN = FirstSubmission(requester="alice", rule="slurm.user", user="someone", account="")
MARK = nodes.cluster_feature(CLUSTER)
ONLY_THERE: Manifest = {**GATED, "nodeSelector": {"zone": "a"}}
SOMEONE = {"slurm": {"user": "someone", "group": "people"}}
BY_TEAM = {
    "rules": [
        {
            "name": "team",
            "match": {"namespace_labels": {"team": "a"}},
            "user": "someone",
            "group": "people",
        }
    ]
}


def outset(
    pods: list[Manifest],
    jobs: list[Job],
    *others: Manifest,
    settings: Mapping[str, Any] | None = None,
) -> Outset:
    """One node, which both systems know."""
    zone = {names.EXTERNAL_NODE_LABEL: "true", "zone": "a"}
    return Outset(
        objects=[kube_node("s1", labels=zone), *others, *pods],
        jobs=jobs,
        nodes=[Node(name="s1", features=(MARK,))],
        settings=SOMEONE if settings is None else settings,
        body=placing,
    )


def of_alice(found: Job) -> Job:
    """Let the placeholder know what was decided when it was submitted."""
    identity = identities.decode(found.comment)
    assert identity is not None
    found.comment = identities.encode(replace(identity, frozen=FROZEN))
    return found


def asking(found: Manifest, cpus: int) -> Manifest:
    (container,) = found["spec"]["containers"]
    container["resources"] = {"requests": {"cpu": str(cpus)}}
    return found


def somebody_elses(cpus: int) -> Manifest:
    """A pod that another scheduler has put on the node."""
    there = {"nodeName": "s1", "schedulerName": "another-scheduler"}
    return asking(pod("other", there), cpus)


def ring_that_runs() -> Job:
    return running(1, "a", "b", ring=True, tasks=2, memory_mib=1024)


def with_devices(
    placeholder: Job,
    its: Manifest,
    *others: Manifest,
    gate: str = "",
    waits: Manifest | None = None,
) -> Outset:
    """A pod that claims devices of the node's two, one by default; gate: somebody else's."""
    waiting = asking(waits or claiming("one"), placeholder.cpus_per_task)
    if gate:
        waiting["spec"]["schedulingGates"] = [{"name": names.GATE}, {"name": gate}]
    found = outset(
        [waiting],
        [placeholder],
        device_class(),
        device_slice(),
        its,
        *others,
        settings={"controllers": {"device_profiles": PROFILES}, **SOMEONE},
    )
    return replace(found, nodes=[Node(name="s1", features=(MARK,), gres="gpu:example:2")])


def team() -> Manifest:
    metadata = {"name": "team-a", "uid": "uid-team-a", "labels": {"team": "a"}}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {**metadata, "creationTimestamp": rfc3339(EPOCH)},
    }


SITUATIONS: Mapping[Situation, set[type[Action]]] = {
    Situation("a new pod", lambda: outset([pod("one", GATED)], [])): {Submit, Tell},
    Situation(
        "a new pod that fits only one node, which is free",
        lambda: outset([pod("one", ONLY_THERE)], []),
    ): {Submit, Assign},
    Situation(
        "a new pod whose namespace decides who may submit",
        lambda: outset([pod("one", GATED)], [], team(), settings={"policy": BY_TEAM}),
    ): {Submit, Tell},
    Situation(
        "a new pod that nobody allows", lambda: outset([pod("one", GATED)], [], settings={})
    ): {Submit, Tell},
    Situation(
        "Kubernetes has no room where Slurm has",
        lambda: outset(
            [asking(pod("one", GATED), 2)],
            [running(cpus_per_task=2, memory_mib=256)],
            somebody_elses(3),
        ),
    ): {Cancel, Submit, Tell},
    Situation(
        "a gang gets its node",
        lambda: outset([asking(member(name, 2), 1) for name in "ab"], [ring_that_runs()]),
    ): {Assign},
    Situation(
        "a gang gets a node that has room for each, but not for all beside each other",
        lambda: outset(
            [asking(member(name, 2), 1) for name in "ab"], [ring_that_runs()], somebody_elses(3)
        ),
    ): {Cancel, Submit, Tell},
    Situation(
        "a member joins a gang that waits",
        lambda: outset(
            [member(name, 2) for name in "ab"],
            [of_alice(job(1, "a", ring=True, tasks=1))],
        ),
    ): {Enlist, Resize, Submit, Tell},
    Situation(
        "a new pod that asks for a device by its class, as no other has in its namespace",
        lambda: outset(
            [by_class("one")],
            [],
            device_class(),
            device_slice(),
            settings={
                "controllers": {"device_profiles": PROFILES},
                **SOMEONE,
            },
        ),
    ): {Submit, Tell},
    Situation(
        "a pod gets its node and the devices it claims",
        lambda: with_devices(running(gres="gpu:example:1(IDX:0)", memory_mib=1024), claim("one")),
    ): {Assign},
    Situation(
        "a pod gets the devices of two claims, of which its status names one",
        lambda: with_devices(
            running(gres="gpu:example:2(IDX:0-1)", memory_mib=1024),
            made_for("one", "a"),
            made_for("one", "b"),
            waits=templated("one", "a", "b", named=("b",)),
        ),
    ): {Assign},
    Situation(
        "a leader died between giving a pod its devices and its node",
        lambda: with_devices(
            running(gres="gpu:example:1(IDX:0)", memory_mib=1024),
            claim("one", given="gpu-0", to="one"),
        ),
    ): {Assign},
    Situation(
        "a pod that was given devices gets no node after all",
        lambda: with_devices(
            running(gres="gpu:example:1(IDX:0)", cpus_per_task=2, memory_mib=256),
            claim("one", given="gpu-0", to="one"),
            somebody_elses(3),
        ),
    ): {Cancel, Submit, Tell},
    Situation(
        "a job is over that gave a pod devices, and none is submitted again",
        lambda: with_devices(
            job(state="NODE_FAIL", nodes="s1"), claim("one", given="gpu-0", to="one"), gate="other"
        ),
    ): set(),
    Situation(
        "a member may not join a gang that waits",
        lambda: outset(
            [member(name, 1) for name in "ab"],
            [job(1, "a", ring=True, tasks=1)],
        ),
    ): {Submit, Tell},
}


@pytest.mark.parametrize(
    "there",
    [each for each in SITUATIONS if "no node after all" in each.name or "is over" in each.name],
)
def test_devices_of_a_placeholder_that_is_over_go_back_at_once(there: Situation) -> None:
    found = lived_through(there, Trouble())

    assert {} == found.api.of("ResourceClaim")["one"]["status"]


def test_a_claim_costs_two_writes() -> None:
    """Its finalizer, and then allocation and reservation together."""
    its = "PATCH /apis/resource.k8s.io/v1/namespaces/team-a/resourceclaims/one"
    plain = Situation(
        "a pod without claims gets its node",
        lambda: outset([asking(pod("one", GATED), 1)], [running(memory_mib=1024)]),
    )
    claims = next(each for each in SITUATIONS if each.name.endswith("devices it claims"))
    without, with_claim = Trouble(), Trouble()

    lived_through(plain, without)
    lived_through(claims, with_claim)

    assert [its, f"{its}/status", *without.writes] == with_claim.writes


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name)
@pytest.mark.parametrize("there", SITUATIONS, ids=lambda there: there.name)
def test_after_a_write_that_went_wrong_all_is_as_if_it_had_not(
    there: Situation, fault: Fault
) -> None:
    check_that_every_write_may_fail(there, fault)


@pytest.mark.parametrize("there", SITUATIONS, ids=lambda there: there.name)
def test_the_situations_take_the_actions_that_they_are_for(
    there: Situation, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: set[str] = set()
    monkeypatch.setattr(PodMetrics, "decided", lambda _, action: done.add(action))
    lived_through(there, Trouble())
    assert {action.__name__ for action in SITUATIONS[there]} == done - {Wait.__name__}
