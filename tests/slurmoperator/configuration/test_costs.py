"""What one look at a Controller costs, whatever its user has written: counted steps, no clock."""

import subprocess
import sys

import pytest

from slurmoperator.configuration import changes, lines, rendering
from slurmoperator.configuration.partitions import PartitionReading
from slurmoperator.objects.parts import LONGEST_CONF
from slurmruntime.values.faults import Refusal
from tests.fuzz.measuring import steps_up_to
from tests.slurmoperator.configuration.given import inputs

OF_A_LINE = 200
"""Steps of a whole plan for each line with settings."""
OF_ALL = 50_000
"""Steps for all comments and blank lines together, for a refusal, and for what is ours."""


def test_a_plan_reads_a_configuration_once() -> None:
    count = lines.MOST_LINES
    written = inputs(extraConf="\n".join(f"Prolog=/{number:04}" for number in range(count)))
    in_force = rendering.render(inputs(extraConf="MinJobAge=60")).files
    lines.read.cache_clear()
    most = OF_ALL + OF_A_LINE * count
    assert (
        steps_up_to(most, lambda: changes.plan_change(written, in_force, PartitionReading()))
        <= most
    )
    # `extraConf`, the desired file and the one in force: once for all readers.
    assert 3 == lines.read.cache_info().misses


@pytest.mark.parametrize("piece", ["\n", "#\n", "  # a\n"])
def test_comments_cost_nothing(piece: str) -> None:
    written = inputs(extraConf=piece * (LONGEST_CONF // len(piece)))
    lines.read.cache_clear()
    assert steps_up_to(OF_ALL, lambda: rendering.render(written)) <= OF_ALL


@pytest.mark.parametrize("piece", ["a\n", "\\\n", "Prolog=a\n"])
def test_more_lines_than_anybody_writes_are_refused_before_they_are_read(piece: str) -> None:
    written = inputs(extraConf=piece * (LONGEST_CONF // len(piece)))

    def refuse() -> None:
        with pytest.raises(Refusal, match="expected at most 2000 lines besides comments"):
            rendering.render(written)

    lines.read.cache_clear()
    assert steps_up_to(OF_ALL, refuse) <= OF_ALL


def test_as_many_lines_as_there_may_be_are_taken() -> None:
    text = "\n".join(f"Prolog=/{number:04}\n# a" for number in range(lines.MOST_LINES))
    assert text[:13] in rendering.render(inputs(extraConf=text)).files["slurm.conf"]


CHILD = """
import resource
from slurmoperator.configuration import refusals
resource.setrlimit(resource.RLIMIT_CPU, (20, -1))
refusals.explain("(line 1 " * 2**17, "slurmctld", (), wanted="A=a", in_force="")
"""


def test_a_message_without_end_is_searched_once() -> None:
    """The search is in C and takes no steps: one that reaches to the end at each beginning takes minutes of CPU, this one less than a second."""
    child = subprocess.run([sys.executable, "-c", CHILD], check=False)
    assert 0 == child.returncode
