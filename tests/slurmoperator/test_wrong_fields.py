"""Every field of the six kinds, wrong in each way that its definition bounds, on a real API server: refused, with its path."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.api import ApiError
from sandbox.client import Sandbox
from slurmoperator.objects.definitions import definition
from slurmruntime.crd.schema import INT_OR_STRING
from tests.slurmoperator.examples import BY_NAME, Manifest, manifest, path

STRICT = {"dryRun": "All", "fieldValidation": "Strict"}
Steps = tuple[str | int, ...]
OF_ANOTHER_TYPE = {
    "string": 7,
    "integer": "many",
    "boolean": "perhaps",
    "array": "one",
    "object": "all",
}


def wrong(node: Manifest) -> Iterator[Any]:
    """Yield a value for each bound of a field that it does not keep."""
    if not node.get(INT_OR_STRING):
        yield OF_ANOTHER_TYPE[node["type"]]
    if "minimum" in node:
        yield node["minimum"] - 1
    if "maximum" in node:
        yield node["maximum"] + 1
    if "minLength" in node:
        yield "a" * (node["minLength"] - 1)
    if "maxLength" in node:
        yield "a" * (node["maxLength"] + 1)
    if "pattern" in node:
        yield "~\n~"
    if "enum" in node:
        yield "Neither"
    if "maxItems" in node and node["items"].get("type") == "object":
        yield [{"name": f"a{number}"} for number in range(node["maxItems"] + 1)]


def fields(node: Manifest, at: Steps = ()) -> Iterator[tuple[Steps, Manifest]]:
    """Yield every field below a node, with the way to it."""
    for name, each in node.get("properties", {}).items():
        yield (*at, name), each
        yield from fields(each, (*at, name))
    items = node.get("items")
    if items is not None:
        yield (*at, 0), items
        yield from fields(items, (*at, 0))


def put(body: Manifest, steps: Steps, value: Any) -> Manifest:
    """Return a copy of a body in which only this field is different."""
    found = copy.deepcopy(body)
    node: Any = found
    for step, following in zip(steps, (*steps[1:], None), strict=True):
        if following is None:
            after = value
        else:
            after = [] if isinstance(following, int) else {}
            there = node[step] if isinstance(step, int) and node else None
            there = node.get(step) if isinstance(node, dict) else there
            after = there if isinstance(there, type(after)) else after
        if isinstance(step, int) and len(node) <= step:
            node.append(after)
        else:
            node[step] = after
        node = after
    return found


def called(steps: Steps) -> str:
    """Return the way to a field as the API server writes it."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)[1:]


def test_a_field_is_changed_where_it_stands() -> None:
    assert {"a": [{"b": 1, "c": 2}]} == put({"a": [{"b": 1}]}, ("a", 0, "c"), 2)
    assert {"a": {"b": [3]}} == put({"a": None}, ("a", "b", 0), 3)
    assert "a.b[0]" == called(("a", "b", 0))


@pytest.mark.parametrize("kind", BY_NAME)
def test_every_field_that_is_wrong_is_refused_with_its_path(
    served: Sandbox, namespace: str, kind: str
) -> None:
    (version,) = definition(BY_NAME[kind])["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    body = manifest(kind)
    body["metadata"]["namespace"] = namespace
    where, passed, count = path(BY_NAME[kind], namespace), list[str](), 0
    for steps, node in fields(spec, ("spec",)):
        for value in wrong(node):
            count += 1
            try:
                served.admin.request("POST", where, put(body, steps, value), params=STRICT)
            except ApiError as refused:
                if called(steps) in refused.message:
                    continue
                passed.append(f"{called(steps)}={value!r:.40} is refused by {refused.message:.200}")
            else:
                passed.append(f"{called(steps)}={value!r:.40} is accepted")

    assert [] == passed
    assert count > len(list(fields(spec)))
