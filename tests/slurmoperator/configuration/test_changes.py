"""What a change of the configuration takes."""

from typing import Any

import pytest

from slurmoperator.configuration.changes import ConfigurationChange, compare
from slurmoperator.configuration.parameters import ChangeTakes
from slurmoperator.configuration.rendering import ConfigurationSet, render
from tests.slurmoperator.configuration.given import inputs, node_set


def made(*sets: Any, config_maps: Any = None, **spec: Any) -> ConfigurationSet:
    return render(inputs(*(sets or (node_set(),)), config_maps=config_maps, **spec))


def refs(**files: str) -> dict[str, Any]:
    names = {name.replace("_", "."): text for name, text in files.items()}
    return {"configFileRefs": [{"name": "a"}], "config_maps": {"a": names}}


@pytest.mark.parametrize(
    ("before", "after", "expected", "item"),
    [
        (made(), made(), None, ""),
        (made(), made(extraConf="# a comment"), None, ""),
        (made(), made(extraConf="MinJobAge=60"), ChangeTakes.RECONFIGURE, "MinJobAge"),
        (made(), made(node_set(), node_set("b")), ChangeTakes.RECONFIGURE, "NodeSet=b"),
        (
            made(extraConf="PartitionName=p Nodes=ALL"),
            made(extraConf="PartitionName=p Nodes=ALL MaxTime=1"),
            ChangeTakes.RECONFIGURE,
            "PartitionName=p",
        ),
        (
            made(extraConf="PartitionName=p Nodes=ALL\nPartitionName=q Nodes=ALL"),
            made(extraConf="PartitionName=q Nodes=ALL\nPartitionName=p Nodes=ALL"),
            None,
            "",
        ),
        (
            made(**refs(topology_yaml="a")),
            made(**refs(topology_yaml="b")),
            ChangeTakes.RECONFIGURE,
            "",
        ),
        (
            made(),
            made(**refs(cgroup_conf="CgroupPlugin=disabled")),
            ChangeTakes.RESTART_ALL,
            "CgroupPlugin",
        ),
        (made(), made(extraConf="TLSType=tls/s2n"), ChangeTakes.RESTART_ALL, "TLSType"),
        (
            made(),
            made(
                ha={"enabled": True, "backups": 1},
                persistence={"enabled": True, "existingClaim": "s"},
            ),
            ChangeTakes.RESTART_SLURMCTLD,
            "SlurmctldAddr",
        ),
        (made(), made(clusterName="other"), ChangeTakes.REFUSED, "ClusterName"),
        (made(), made(extraConf="SelectType=select/linear"), ChangeTakes.REFUSED, "SelectType"),
    ],
)
def test_what_a_change_takes(
    before: ConfigurationSet, after: ConfigurationSet, expected: ChangeTakes | None, item: str
) -> None:
    found = compare(before, after)

    assert expected is takes(found)
    assert all(each.reason for each in found)
    if found:
        assert item == found[0].item
    assert expected is takes(compare(after, before))


def takes(found: tuple[ConfigurationChange, ...]) -> ChangeTakes | None:
    """What all the changes together take."""
    return max((each.takes for each in found), default=None)


def test_what_is_refused_says_why() -> None:
    (first, *_) = compare(made(), made(clusterName="other"))

    assert "does not start with the state" in first.reason


@pytest.mark.parametrize("line", ["SelectType=select/cons_tres", "SwitchType=switch/none"])
def test_a_default_that_is_said_aloud_is_no_change(line: str) -> None:
    for before, after in (("", line), (line, "")):
        found = compare(render_of(before), render_of(after))
        assert () == found
    other = compare(render_of(""), render_of(f"{line}_other"))
    assert ChangeTakes.REFUSED == takes(other)


def render_of(line: str) -> ConfigurationSet:
    return ConfigurationSet(files={"slurm.conf": f"{line}\n"})
