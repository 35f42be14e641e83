"""What the dearest SlurmJobs cost: steps and bytes follow the length of a text, never what it stands for.

Steps are lines of Python, counted, so that no clock decides; a plain search of the interpreter's C code is none.
"""

import json
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.domain.admission.review import Verdict
from bridge.domain.request.rules import Policy, Requester, Rule
from slurmjobs.admission import review
from slurmjobs.objects import slurmjob
from slurmjobs.objects.spec import LONGEST_SCRIPT
from slurmjobs.script.directives import LONGEST_DIRECTIVE
from slurmjobs.script.options import OPTIONS, Treatment
from slurmjobs.script.values.form import LONGEST_VALUE
from slurmruntime.values import hostlist

pytestmark = pytest.mark.slow

MOST_STEPS = 300_000
"""A step takes some 0.1 µs, and a review may take 50 ms."""
MOST_BYTES = 16 * 2**20

LONGEST = LONGEST_SCRIPT - 64
ROOM = LONGEST_DIRECTIVE - 64
RULE = Rule(name="lab", source="x", user="{user}", kinds=frozenset({"SlurmJob"}))


@dataclass
class Cost:
    """What a call has cost."""

    steps: int = 0
    peak_bytes: int = 0


@contextmanager
def counted() -> Iterator[Cost]:
    cost = Cost()

    def line(_frame: FrameType, event: str, _arg: Any) -> Callable[..., Any]:
        cost.steps += event == "line"
        return line

    before = sys.gettrace()
    tracemalloc.start()
    try:
        sys.settrace(line)
        try:
            yield cost
        finally:
            sys.settrace(before)
            cost.peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def reviewed(script: str, options: dict[str, Any] | None = None) -> Verdict:
    spec = {"script": script, "options": options or {}}
    job = slurmjob.OURS.read(json.dumps({"metadata": {"name": "a"}, "spec": spec}).encode())
    now = datetime(2026, 11, 27, tzinfo=UTC)
    return review.validate(job, Requester(user="mallory"), Policy(rules=(RULE,)), now)


def header(*directives: str) -> str:
    return "#!/bin/sh\n" + "".join(f"#SBATCH {directive}\n" for directive in directives) + "true\n"


def cost_of(script: str, options: dict[str, Any] | None = None) -> Cost:
    reviewed("#!/bin/sh\n")  # what is made once
    with counted() as cost:
        reviewed(script, options)
    return cost


SCRIPTS = {
    "many short lists that stand for many nodes": header(*["-x n[1-99999]"] * 900),
    "one list whose names are long": header(f"-x {'a' * (ROOM - 20)}[1-99999]"),
    "the same, to run on": header(f"-w {'a' * (ROOM - 20)}[1-99999]"),
    "as many nodes as may be named": header("-w n[1-16384]"),
    "many brackets": header(f"-w {'[1-9]' * (ROOM // 5)}"),
    "many numbers": header(*[f"-w n[{'1,' * (ROOM // 2 - 9)}1]"] * 40),
    "many names": header(*[f"-w {'a,' * (ROOM // 2 - 9)}a"] * 60),
    "a megabyte of letters": header(*[f"-{'H' * ROOM}"] * 62),
    "a megabyte of words": header(*["-H " * (ROOM // 3)] * 62),
    "a megabyte of escapes": header(*[f"-J {chr(92)}a" * (ROOM // 5)] * 62),
    "open quotes": header(*['"'] * 1000),
    "unknown options": header(*["--tsak"] * 1000),
    "long unknown options": header(*[f"--{'xyz' * 100}"] * 100),
    "a number of 5000 digits": header(f"--gpus-per-task={'1' * 5000}"),
    "masks that stand for many": header(*[f"--mem-bind=mask_mem:{'f' * 64}*9999"] * 300),
    "lines": "#!/bin/sh\n" + "\n" * LONGEST,
    "comments": "#!/bin/sh\n" + "#\n" * (LONGEST // 2),
    "indented directives": "#!/bin/sh\n" + " #SBATCH\n" * (LONGEST // 9),
    "late directives": "#!/bin/sh\ntrue\n" + "#SBATCH -H\n" * (LONGEST // 11),
    "one long line": "#!/bin/sh\n" + " " * LONGEST,
    "letters of four bytes": "#!/bin/sh\n" + "x" * (LONGEST - 40) + "\U0001f600",
    "PBS comments": "#!/bin/sh\n#PBS -h\n" + "#\n" * (LONGEST // 2),
    "PBS variables": "#!/bin/sh\n" + f"#PBS -v {'a' * 60}\n" * 400,
    "PBS resources without a value": f"#!/bin/sh\n#PBS -l {'a' * ROOM}\n",
    "PBS resources and colons": f"#!/bin/sh\n#PBS -l a={':a' * (ROOM // 2)}\n",
    "PBS letters": "#!/bin/sh\n" + f"#PBS -{'h' * ROOM}\n" * 60,
    "BSUB words": "#!/bin/sh\n" + f"#BSUB {'-cwd a ' * (ROOM // 7)}\n" * 60,
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_the_dearest_scripts_cost_little(script: str) -> None:
    cost = cost_of(script)

    assert cost.steps < MOST_STEPS
    assert cost.peak_bytes < MOST_BYTES


SAMPLE = 2048
"""Characters: an eighth of the longest value may cost an eighth."""
WORST = ("1,", "a,", "1-2,", ",", " ", "1*9999,", "gres/a:1,", "none,")


@pytest.mark.parametrize(
    "option", [each for each in OPTIONS if each.form and each.treatment is Treatment.SENT]
)
def test_the_dearest_values_cost_little(option: Any) -> None:
    for piece in WORST:
        value = (piece * SAMPLE)[: min(option.form.longest, SAMPLE)]
        cost = cost_of("#!/bin/sh\n", {option.field: value})
        assert cost.steps < MOST_STEPS * SAMPLE / LONGEST_VALUE


PIECES = st.sampled_from(
    ["n", "[", "]", "1-99999", "1", "-", ",", "-x ", "-w ", "#SBATCH ", "#PBS -l ", "\n", "H", "*9"]
)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(PIECES, min_size=1, max_size=6), st.integers(1, 2000))
def test_whatever_is_repeated_costs_little(pieces: list[str], times: int) -> None:
    cost = cost_of("#!/bin/sh\n#SBATCH -" + "".join(pieces) * times)

    assert cost.steps < MOST_STEPS
    assert cost.peak_bytes < MOST_BYTES


@given(st.text(alphabet="n019[]-,", max_size=24))
def test_a_list_is_measured_as_it_is_expanded(text: str) -> None:
    try:
        size = hostlist.measure(text)
    except ValueError:
        with pytest.raises(ValueError, match="hostlist"):
            hostlist.expand(text)
        return
    if size.names < 10_000:
        names = hostlist.expand(text)
        assert size == (len(names), sum(map(len, names)))


def test_what_is_too_long_is_refused_with_its_line_and_what_is_expected() -> None:
    told = [
        reviewed(script).faults[0].text
        for script in (
            SCRIPTS["many short lists that stand for many nodes"],
            SCRIPTS["one list whose names are long"],
            SCRIPTS["a number of 5000 digits"],
            SCRIPTS["comments"],
            header(*[f"--comment={'a' * 9000}"] * 4),
        )
    ]

    for text, said in zip(
        told,
        (
            "line 502: the header has more than 500 options",
            "line 2: --exclude=aaa",
            "line 2: --gpus-per-task has 5000 characters, expected at most 1024: a count, or a list of type:count",
            "line 2000: there is no command in the first 2000 lines",
            "line 5: the directives up to here have more than 32768 characters",
        ),
        strict=True,
    ):
        assert said in text
    assert "more than 4194304 characters in all names together" in told[1]
