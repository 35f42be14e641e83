"""Where the line stands that slurmctld refuses."""

from collections.abc import Mapping

import pytest

from slurmoperator.configuration import refusals
from slurmoperator.configuration.inputs import ConfigurationInputs
from tests.slurmoperator.configuration.given import files, inputs, node_set

BEFORE = "MinJobAge=60\n"


def explained(
    words: str, given: ConfigurationInputs, *, wanted: Mapping[str, str], in_force: str
) -> str:
    written = refusals.user_lines(given)
    made = wanted["slurm.conf"]
    return refusals.explain(words, "slurmctld", written, wanted=made, in_force=in_force)


@pytest.mark.parametrize(
    ("extra", "words", "at"),
    [
        (
            "MinJobAge=60\nDefMemPerNode=4G",
            "error: DefMemPerNode value (4G) is not a valid number",
            "spec.extraConf line 2, DefMemPerNode=4G: ",
        ),
        (
            "PartitionName=a Nodes=ALL MaxTime=60\n\nPartitionName=b Nodes=ALL MaxTime=2days",
            'error: Bad value "2days" for MaxTime',
            "spec.extraConf line 3, PartitionName=b Nodes=ALL MaxTime=2days: ",
        ),
        ("MinJobAge=60\nJobSubmitPlugins=lua", "fatal: no", "spec.extraConf line 2, Job"),
        ("MinJobAge=60\nLicenses=foo:bar", "fatal: Invalid configured licenses: foo:bar", "line 2"),
    ],
)
def test_the_line_is_the_one_that_slurm_speaks_of(extra: str, words: str, at: str) -> None:
    given, before = inputs(node_set(), extraConf=extra), inputs(node_set(), extraConf=BEFORE)
    found = explained(words, given, wanted=files(given), in_force=files(before)["slurm.conf"])

    assert at in found
    assert found.endswith(f"slurmctld says: {words}")


def test_a_number_is_that_of_the_file_that_we_make() -> None:
    given = inputs(node_set(), extraConf="MinJobAge=60\nPartitionName=a Nodes=ALL DefMemPerCPU=4G")
    made = files(given)
    number = made["slurm.conf"].splitlines().index("PartitionName=a Nodes=ALL DefMemPerCPU=4G") + 1
    words = f'error: Parse error in file /etc/slurm/slurm.conf line {number}: " DefMemPerCPU=4G"'

    found = explained(words, given, wanted=made, in_force="")
    assert found.startswith("spec.extraConf line 2, PartitionName=a Nodes=ALL DefMemPerCPU=4G: ")


def test_the_partition_of_a_node_set_is_its_own() -> None:
    given = inputs(node_set(partition={"enabled": True, "config": "MaxTime=2days"}))
    words = 'error: Bad value "2days" for MaxTime'

    found = explained(words, given, wanted=files(given), in_force="")
    assert found.startswith("NodeSet cpu spec.partition.config, PartitionName=cpu Nodes=cpu MaxT")


def test_what_nobody_wrote_is_told_in_slurms_words_only() -> None:
    given = inputs(node_set(), extraConf=BEFORE)

    found = explained("fatal: no", given, wanted=files(given), in_force=files(given)["slurm.conf"])
    assert found == "slurmctld says: fatal: no"
