"""Pods that have as much of one thing as is asked for, by the names of the caps."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from bridge.domain.caps import DEFAULT, TABLE
from slurmruntime.values import names

Members = dict[str, dict[str, Any]]
"""Of a manifest: `metadata` and `spec`."""


def caps_named(text: str) -> list[str]:
    """The caps that faults name."""
    return re.findall(r"\((?:setting caps\.|fixed cap )(\w+)\)", text)


def having(name: str, amount: int) -> Members:
    """The members of a pod that has exactly so much of what the cap counts (object: or a bit more)."""
    return _MADE[name](amount)


def all_too_much() -> Members:
    """More than every default allows: all of it is named in one refusal."""
    found: Members = {"metadata": {}, "spec": {}}
    for name in TABLE:
        for member, fields in having(name, getattr(DEFAULT, name) + 1).items():
            for field, value in fields.items():
                if isinstance(value, dict) and field != "affinity":
                    found[member][field] = {**found[member].get(field, {}), **value}
                else:
                    found[member].setdefault(field, value)
    container = found["spec"]["containers"][0]
    container["args"] = ["x" * DEFAULT.object_bytes]
    terms = [[_expression(50) for _ in range(5)] for _ in range(DEFAULT.affinity_terms + 1)]
    found["spec"]["affinity"] = _required(*terms)["spec"]["affinity"]
    return found


def _expression(values: int = 1) -> dict[str, Any]:
    return {"key": "a.test/key", "operator": "In", "values": [f"v{n}" for n in range(values)]}


def _required(*terms: list[dict[str, Any]]) -> Members:
    selector = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": selector}
    return {"spec": {"affinity": {"nodeAffinity": required}}}


def _annotations(found: Mapping[str, str]) -> Members:
    return {"metadata": {"annotations": dict(found)}}


def _labels(found: Mapping[str, str]) -> Members:
    return {"metadata": {"labels": dict(found)}}


def _label_bytes(amount: int) -> Members:
    """Few labels, each as long as the API server takes them."""
    whole, rest = divmod(amount - 4, 256 + 63)
    last = f"{whole:0{min(rest, 252) + 1}}/kk"
    labels = {f"{n:0253}/kk": "x" * 63 for n in range(whole)}
    return _labels(labels | {last: "x" * (rest - min(rest, 252))})


def _container(**fields: object) -> Members:
    return {"spec": {"containers": [{"name": "main", "image": "i", **fields}]}}


_MADE: Mapping[str, Callable[[int], Members]] = {
    "grace_s": lambda amount: {"spec": {"terminationGracePeriodSeconds": amount}},
    "gang_size": lambda amount: _annotations({names.POD_GROUP_SIZE_ANNOTATION: str(amount)}),
    "annotations": lambda amount: _annotations({f"a.test/{n}": "x" for n in range(amount)}),
    "annotation_bytes": lambda amount: _annotations({"a": "x" * (amount - 1)}),
    "labels": lambda amount: _labels({f"a.test/{n}": "x" for n in range(amount)}),
    "label_bytes": _label_bytes,
    "affinity_terms": lambda amount: _required(*([_expression()] for _ in range(amount))),
    "affinity_expressions": lambda amount: _required([_expression() for _ in range(amount)]),
    "affinity_values": lambda amount: _required([_expression(amount)]),
    "host_ports": lambda amount: _container(
        ports=[{"containerPort": n, "hostPort": n} for n in range(1, amount + 1)]
    ),
    "tolerations": lambda amount: {
        "spec": {"tolerations": [{"key": f"k{n}"} for n in range(amount)]}
    },
    "object_bytes": lambda amount: _container(args=["x" * amount]),
}
