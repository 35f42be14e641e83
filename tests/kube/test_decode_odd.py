"""What cannot be read is named; what can only be odd is clamped and told."""

from collections.abc import Callable
from typing import Any

import pytest

from bridge.kube import decode
from slurmruntime.kube import errors, node_objects, resource
from slurmruntime.kube.resource import Change
from slurmruntime.values import names, numbers
from tests.kube.manifests import Manifest, container, pod
from tests.kube.stored import read_bound, read_pod, stored


def broken(path: list[str | int], value: object) -> Manifest:
    manifest = stored(pod("a", nodeName="n", containers=[container(ports=[{}], resources={})]))
    place: Any = manifest
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return manifest


@pytest.mark.parametrize("read", [read_pod, read_bound])
@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        (["spec", "containers", 0, "ports"], [{"hostPort": "x"}], "$.spec.containers[0].ports[0]"),
        (["status", "phase"], "Odd", "$.status.phase"),
        (["metadata", "labels"], [], "$.metadata.labels"),
        (["metadata", "creationTimestamp"], "yesterday", "$.metadata.creationTimestamp"),
        (
            ["spec", "containers", 0, "resources"],
            {"requests": {"cpu": "many"}},
            "expected a Kubernetes quantity",
        ),
    ],
)
def test_what_breaks_the_schema_is_named(
    read: Callable[[Manifest], object], path: list[str | int], value: object, complaint: str
) -> None:
    with pytest.raises(errors.Malformed) as refusal:
        read(broken(path, value))

    assert "Pod ns/a: Malformed: " in str(refusal.value)
    assert complaint in str(refusal.value)


DEEP = b'{"metadata":{"name":"a"},"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
"""Within the limits of a body, but no object of Kubernetes nests like that."""


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"kind":"Pod"}', b'{"metadata":1}', DEEP]
)
def test_what_is_no_object_at_all_is_malformed(body: bytes) -> None:
    for read in (decode.pod, decode.bound_pod, node_objects.node, resource.kube_object):
        with pytest.raises(errors.Malformed):
            read(body)


def test_a_watch_event_is_split_and_an_unknown_type_refused() -> None:
    change, body = resource.event("/pods", b'{"type":"ADDED","object":{"a":1}}')

    assert (Change.ADDED, b'{"a":1}') == (change, bytes(body))
    with pytest.raises(errors.Malformed, match="RENAMED"):
        resource.event("/pods", b'{"type":"RENAMED","object":{}}')


@pytest.mark.parametrize("grace_s", [10**12, 2**62, -1, -(2**63)])
def test_a_grace_that_no_span_of_time_can_be_is_clamped_and_told(grace_s: int) -> None:
    odd = read_pod(
        stored(
            pod("odd", terminationGracePeriodSeconds=grace_s),
            deletionTimestamp="2149-01-01T00:00:00Z",
            deletionGracePeriodSeconds=grace_s,
        )
    )

    assert {odd.grace_s, odd.deletion_grace_s} <= {0, numbers.LONGEST_S}
    assert odd.deletion_requested_at is not None
    assert odd.created_at <= odd.deletion_requested_at
    assert [
        "spec.terminationGracePeriodSeconds",
        "metadata.deletionGracePeriodSeconds",
    ] == [fault.path for fault in odd.oddities]
    assert all(f"found {grace_s}" in fault.message for fault in odd.oddities)


def test_a_rank_of_5000_digits_is_none_and_told() -> None:
    odd = read_pod(stored(pod("odd", annotations={names.RANK_ANNOTATION: "9" * 5000})))

    assert odd.rank is None
    assert [f"metadata.annotations[{names.RANK_ANNOTATION}]"] == [f.path for f in odd.oddities]
    assert all(len(fault.text) < 300 for fault in odd.oddities)


def test_nothing_is_odd_about_an_ordinary_pod() -> None:
    assert () == read_pod(stored(pod("plain"))).oddities
