"""A user's part over ours: what wins, what is kept, and that nothing is invented."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmoperator.rendering.overlay import merge

OURS: dict[str, Any] = {
    "hostname": "gpu-1",
    "enableServiceLinks": False,
    "containers": [
        {
            "name": "slurmd",
            "image": "a",
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            "ports": [{"containerPort": 6818, "protocol": "TCP", "name": "slurmd"}],
            "resources": {"limits": {"cpu": "1"}},
            "args": ["-Z"],
            "livenessProbe": {"httpGet": {"path": "/"}, "periodSeconds": 5},
        }
    ],
    "volumes": [{"name": "key", "secret": {"secretName": "k"}}],
    "tolerations": [{"key": "a"}],
    "ports": [{"port": 80}, {"port": 22}],
}


@pytest.mark.parametrize(
    ("theirs", "path", "expected"),
    [
        ({"enableServiceLinks": True}, ("enableServiceLinks",), True),
        ({"terminationGracePeriodSeconds": 0}, ("terminationGracePeriodSeconds",), 0),
        ({"hostname": None}, (), {key: OURS[key] for key in OURS if key != "hostname"}),
        ({"tolerations": [{"key": "b"}]}, ("tolerations",), [{"key": "a"}, {"key": "b"}]),
        ({"tolerations": [{"key": "a"}]}, ("tolerations",), [{"key": "a"}]),
        ({"containers": [{"name": "slurmd", "args": []}]}, ("containers", 0, "args"), ["-Z"]),
        (
            {"containers": [{"name": "slurmd", "args": ["-v"]}]},
            ("containers", 0, "args"),
            ["-Z", "-v"],
        ),
        (
            {"containers": [{"name": "slurmd", "command": ["sleep"], "args": ["9"]}]},
            ("containers", 0, "args"),
            ["9"],
        ),
        (
            {"containers": [{"name": "slurmd", "env": [{"name": "A", "valueFrom": {"x": 1}}]}]},
            ("containers", 0, "env", 0),
            {"name": "A", "valueFrom": {"x": 1}},
        ),
        (
            {"containers": [{"name": "slurmd", "livenessProbe": {"exec": {"command": ["a"]}}}]},
            ("containers", 0, "livenessProbe"),
            {"exec": {"command": ["a"]}, "periodSeconds": 5},
        ),
        (
            {"containers": [{"name": "slurmd", "livenessProbe": {"periodSeconds": 7}}]},
            ("containers", 0, "livenessProbe"),
            {"httpGet": {"path": "/"}, "periodSeconds": 7},
        ),
        (
            {"volumes": [{"name": "key", "emptyDir": {}}]},
            ("volumes", 0),
            {"name": "key", "emptyDir": {}},
        ),
        (
            {"ports": [{"port": 22, "nodePort": 3}]},
            ("ports",),
            [{"port": 80}, {"port": 22, "nodePort": 3}],
        ),
        ({"containers": [{"name": "slurmd", "image": "b"}]}, ("containers", 0, "image"), "b"),
        ({"containers": [{"name": "other"}]}, ("containers", 1), {"name": "other"}),
        (
            {"containers": [{"name": "slurmd", "env": [{"name": "B", "value": ""}]}]},
            ("containers", 0, "env"),
            [{"name": "A", "value": "1"}, {"name": "B", "value": ""}],
        ),
        (
            {"containers": [{"name": "slurmd", "ports": [{"containerPort": 6818, "name": "x"}]}]},
            ("containers", 0, "ports"),
            [{"containerPort": 6818, "protocol": "TCP", "name": "x"}],
        ),
        (
            {"containers": [{"name": "slurmd", "resources": {"limits": {"memory": "1Gi"}}}]},
            ("containers", 0, "resources"),
            {"limits": {"cpu": "1", "memory": "1Gi"}},
        ),
        (
            {"volumes": [{"name": "key", "secret": None, "emptyDir": {}}]},
            ("volumes", 0),
            {"name": "key", "emptyDir": {}},
        ),
        ({"volumes": [{"name": "key", "$patch": "delete"}]}, ("volumes",), []),
        (
            {"volumes": [{"name": "key", "$patch": "replace", "emptyDir": {}}]},
            ("volumes", 0),
            {"name": "key", "emptyDir": {}},
        ),
    ],
)
def test_what_they_say_wins_and_the_rest_is_ours(
    theirs: dict[str, Any], path: tuple[Any, ...], expected: object
) -> None:
    found: Any = merge(OURS, theirs)
    for key in path:
        found = found[key]

    assert expected == found


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "containers", "env", "args", "x", "$patch"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(st.sampled_from(["name", "containers", "env", "x"]), _VALUES, max_size=3)


@given(_OBJECTS, _OBJECTS)
def test_anything_can_be_laid_over_anything_and_once_is_enough(
    ours: dict[str, Any], theirs: dict[str, Any]
) -> None:
    before = repr(ours)
    once = merge(ours, theirs)

    assert repr(ours) == before
    assert once == merge(ours, theirs)
    assert ours == merge(ours, {})
