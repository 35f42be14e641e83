"""Whatever a user wants of a pod is in it: laid over ours, never instead of it."""

import operator
from collections.abc import Iterator, Mapping
from typing import Any

from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from slurmoperator.rendering.body import digest
from slurmoperator.rendering.node_sets.worker import worker_pod
from tests.slurmoperator.rendering.given import MADE_FOR, SITE, given, named, pod, rendered

Strategy = st.SearchStrategy[Any]
_NAME = operator.itemgetter("name")
_TEXT = st.text("ab", min_size=1, max_size=2)
_VALUES: Strategy = (
    st.booleans() | st.integers(0, 3) | _TEXT | st.dictionaries(_TEXT, _TEXT, max_size=2)
)
_CONTAINERS: Strategy = st.fixed_dictionaries(
    {"name": st.sampled_from(["slurmctld", "slurmdbd", "slurmrestd", "login", "slurmd", "mine"])},
    optional={
        "image": _TEXT,
        "args": st.lists(_TEXT, max_size=2),
        "env": st.lists(
            st.fixed_dictionaries(
                {"name": st.sampled_from(["POD_CPUS", "SLURM_JWT", "a"]), "value": _TEXT}
            ),
            max_size=2,
            unique_by=_NAME,
        ),
        "livenessProbe": st.fixed_dictionaries({"tcpSocket": st.just({"port": 1})}),
        "securityContext": st.dictionaries(
            st.sampled_from(["privileged", "runAsUser"]), st.sampled_from([False, 0]), max_size=2
        ),
    },
)
PATCHES: Strategy = st.fixed_dictionaries(
    {},
    optional={
        "containers": st.lists(_CONTAINERS, max_size=2, unique_by=_NAME),
        "volumes": st.lists(
            st.fixed_dictionaries(
                {
                    "name": st.sampled_from(["slurm-etc", "mine"]),
                    "hostPath": st.just({"path": "/a"}),
                }
            ),
            max_size=2,
            unique_by=_NAME,
        ),
        "tolerations": st.lists(st.dictionaries(_TEXT, _TEXT, max_size=2), max_size=2),
        "dnsConfig": st.fixed_dictionaries({"searches": st.lists(_TEXT, max_size=2)}),
        "securityContext": st.dictionaries(_TEXT, _VALUES, max_size=2),
        "terminationGracePeriodSeconds": st.integers(0, 2),
        "automountServiceAccountToken": st.booleans(),
        "nodeSelector": st.dictionaries(_TEXT, _TEXT, max_size=2),
        "priorityClassName": st.just(""),
    },
)
_BY_NAME = {"containers", "env", "volumes"}
_ADDED = {"args", "tolerations", "searches"}


def turned(value: Any) -> Any:
    """The same with the keys of each object in the other order."""
    if isinstance(value, dict):
        return {key: turned(each) for key, each in reversed(value.items())}
    return [turned(each) for each in value] if isinstance(value, list) else value


@settings(max_examples=30, deadline=None)
@for_all(kind=st.sampled_from(MADE_FOR), patch=PATCHES)
def test_the_order_of_keys_makes_no_difference(kind: str, patch: dict[str, Any]) -> None:
    one, other = (
        digest(rendered(given(kind, template={"spec": spec}))) for spec in (patch, turned(patch))
    )

    assert one == other


def missing(asked: Any, found: Any, at: str = "spec") -> Iterator[str]:
    """What was asked for and is not there."""
    if isinstance(asked, Mapping) and isinstance(found, Mapping):
        for key, value in asked.items():
            if key in _BY_NAME:
                for each in value:
                    yield from missing(each, named(found[key], each["name"]), f"{at}.{key}")
            elif key in _ADDED:
                yield from (f"{at}.{key}" for each in value if each not in found[key])
            elif key not in found:
                yield f"{at}.{key}"
            else:
                yield from missing(value, found[key], f"{at}.{key}")
    elif asked != found:
        yield f"{at}: asked for {asked!r}, found {found!r}"


@settings(max_examples=60, deadline=None)
@for_all(kind=st.sampled_from(MADE_FOR), patch=PATCHES)
def test_whatever_the_user_wants_of_a_pod_is_in_it(kind: str, patch: dict[str, Any]) -> None:
    found = given(kind, template={"spec": patch})
    if kind == "NodeSet":
        spec = worker_pod(found, 0, given("Controller"), SITE)["spec"]
    else:
        spec = pod(rendered(found))["spec"]

    assert [] == list(missing(patch, spec))
