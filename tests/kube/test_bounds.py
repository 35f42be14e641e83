"""What is kept of a pod that no webhook has refused."""

import json
from typing import Any

import pytest

from bridge.domain import caps
from bridge.domain.caps import TABLE
from bridge.domain.model.pods import Pod
from bridge.kube import decode
from slurmruntime.model.affinity import NodeTerm
from slurmruntime.values import names
from tests.kube.manifests import pod
from tests.make import oversized


def read(members: oversized.Members, **metadata: Any) -> Pod:
    manifest = pod("fat")
    for member, fields in members.items():
        manifest[member] |= fields
    manifest["metadata"] |= {
        "uid": "u",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T12:00:00Z",
        **metadata,
    }
    return decode.pod(json.dumps(manifest).encode())


@pytest.mark.parametrize("name", sorted(TABLE.keys() - {"grace_s", "gang_size", "object_bytes"}))
def test_every_size_is_read_as_it_is(name: str) -> None:
    found = read(oversized.having(name, TABLE[name].largest + 1))

    assert TABLE[name].largest < getattr(found.sizes, name)
    faults = [fault.message for fault in caps.faults(found.sizes, caps.DEFAULT)]
    assert name in oversized.caps_named(" ".join(faults))


@pytest.mark.parametrize("name", ["affinity_terms", "affinity_expressions", "affinity_values"])
def test_an_affinity_beyond_all_settings_matches_no_node(name: str) -> None:
    """Whatever is decided about such a pod, it is never pinned by half of its terms."""
    assert (NodeTerm(),) == read(oversized.having(name, TABLE[name].largest + 1)).node_terms
    assert (NodeTerm(),) != read(oversized.having(name, TABLE[name].largest)).node_terms


def test_lists_are_kept_up_to_the_largest_setting() -> None:
    found = read(oversized.having("tolerations", 5000))
    ports = read(oversized.having("host_ports", 5000))

    assert TABLE["tolerations"].largest == len(found.tolerations)
    assert TABLE["host_ports"].largest == len(ports.host_ports)


@pytest.mark.attack(
    "give one's own waiting pod 100 000 tolerations, so that each change of it stops both leaders for a second",
    "lists that are longer than honest ones are not decoded; the pod counts as too large",
)
@pytest.mark.parametrize("name", ["tolerations", "affinity_terms", "affinity_values"])
def test_a_list_that_is_too_long_to_be_read_counts_as_too_many(name: str) -> None:
    """The rest of the pod is read as ever."""
    found = read(
        oversized.having(name, 30_000), annotations={names.NODE_ANNOTATION: "n"}, finalizers=["a/b"]
    )

    counted = "affinity_terms" if name == "affinity_values" else name
    assert TABLE[counted].largest + 1 == getattr(found.sizes, counted)
    assert ("n", ("a/b",)) == (found.assigned_node, found.finalizers)


def test_owners_that_are_too_long_to_be_read_are_none() -> None:
    reference = {"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
    others = [{**reference, "controller": False}] * 2000

    assert read({}, ownerReferences=[reference]).owner is not None
    assert read({}, ownerReferences=[reference, *others]).owner is None


def test_what_ties_a_placed_pod_to_its_job_is_kept_among_thousands() -> None:
    labels = {f"a.test/{n}": "x" for n in range(5000)} | {names.JOB_ID_LABEL: "7"}
    notes = {f"a.test/{n}": "x" for n in range(5000)} | {names.NODE_ANNOTATION: "n"}

    found = read({}, labels=labels, annotations=notes)

    assert (7, "n") == (found.job_id, found.assigned_node)
    assert TABLE["labels"].largest + 1 >= len(found.labels)
    assert TABLE["annotations"].largest + 1 >= len(found.annotations)


def test_long_texts_of_others_are_cut_and_ours_are_not() -> None:
    found = read(
        {}, annotations={"a.test/long": "x" * 200_000, names.NODELIST_ANNOTATION: "n" * 9000}
    )

    assert {8192, 9000} == {len(text) for text in found.annotations.values()}


def test_the_label_that_we_write_counts_for_nothing() -> None:
    labels = {f"a.test/{n}": "x" for n in range(caps.DEFAULT.labels)}

    found = read({}, labels=labels | {names.JOB_ID_LABEL: "7"})

    assert [] == list(caps.faults(found.sizes, caps.DEFAULT))
