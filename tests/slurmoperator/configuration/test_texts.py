"""Texts of users: work follows their length, and Slurm reads everything as we write it."""

import contextlib
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmoperator.configuration import lines
from slurmoperator.configuration.inputs import ConfigurationInputs
from slurmoperator.configuration.lines import LONGEST_LINE, Setting
from slurmoperator.configuration.rendering import render
from slurmruntime.values.faults import Refusal
from tests.slurmoperator.configuration.given import files, inputs, node_set

LONG = 65_000
WORST: dict[str, Callable[[int], str]] = {
    "commas": lambda n: f"AuthInfo={',' * n}",
    "commas that a bracket does not close": lambda n: f"AuthInfo={'[,' * (n // 2)}",
    "commas of many lines": lambda n: f"AuthInfo={',' * 4000}\n" * (n // 4010),
    "continued lines": lambda n: "\\\n" * (n // 2),
    "backslashes": lambda n: "\\" * n + "#",
    "comments": lambda n: "#" * n,
    "blanks": lambda n: " " * n + "a",
    "settings": lambda n: "A=a " * (n // 4),
    "quotation marks": lambda n: "A=" + '"' * n,
    "a word": lambda n: "a" * n,
    "an include": lambda n: "include " + " " * (n - 20) + "a b",
    "lines": lambda n: "a\n" * (n // 2),
    "partitions": lambda n: "".join(f"PartitionName={at}\n" for at in range(n // 20)),
}


def steps(work: Callable[[], Any]) -> int:
    """How many lines of Python are run, even if the work ends in a refusal."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with contextlib.suppress(Refusal):
            work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("worst", WORST.values(), ids=WORST)
def test_twice_the_length_takes_at_most_twice_the_work(worst: Callable[[int], str]) -> None:
    small, large = (
        steps(partial(render, inputs(extraConf=worst(length)))) for length in (LONG // 4, LONG // 2)
    )

    assert large <= 2.3 * small + 1000


@pytest.mark.parametrize("text", ["," * LONG, "[," * (LONG // 2), "a," * (LONG // 2)])
def test_a_list_is_split_in_one_pass(text: str) -> None:
    assert steps(lambda: lines.words(text)) <= 12 * len(text)


def test_a_line_that_is_too_long_is_not_read_further() -> None:
    (line,) = lines.read("AuthInfo=" + "," * LONG)
    assert () == line.settings
    with pytest.raises(Refusal) as refused:
        render(inputs(extraConf=line.text))
    assert f"expected at most {LONGEST_LINE} characters, found 65009" in refused.value.text


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        (inputs(node_set(extraConf="Gres=gpu\\:1")), "Gres: expected a kind such as gpu"),
        (inputs(node_set(extraConf="Gres=gpu#x:1")), "Gres: expected a kind such as gpu"),
        (inputs(node_set(extraConf='Gres=gp"u:1')), "Gres: expected a kind such as gpu"),
        *(
            (
                inputs(node_set(partition={"enabled": True, "config": config})),
                "as written: expected no #",
            )
            for config in ("MaxTime=1\\", "MaxTime=1 # x", 'MaxTime=1"x')
        ),
        (inputs(extraConf='MaxTime="1'), "expected Key=Value"),
    ],
)
def test_no_value_swallows_the_next_line_or_breaks_the_file(
    given_: ConfigurationInputs, said: str
) -> None:
    with pytest.raises(Refusal) as refused:
        render(given_)

    assert said in refused.value.text


@given(st.text(alphabet='ag:,=\\#"', min_size=1, max_size=12))
def test_whatever_a_node_set_says_the_prolog_stays(text: str) -> None:
    scripts: Any = {
        "prologScriptRefs": [{"name": "guard"}],
        "config_maps": {"guard": {"90-guard.sh": "#!/bin/sh\n"}},
    }
    for node_set_ in (
        node_set(extraConf=f"Gres=g{text}"),
        node_set(partition={"enabled": True, "config": f"MaxTime={text}"}),
    ):
        try:
            found = render(inputs(node_set_, **scripts))
        except Refusal:
            continue
        read = list(lines.read(found.files["slurm.conf"]))
        assert [(Setting("Prolog", "90-guard.sh"),)] == [
            each.settings for each in read if each.text.startswith("Prolog=")
        ]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("A=1\\\nB=2", ["A=1B=2"]),
        ("A=1\\\\\nB=2", ["A=1\\\\", "B=2"]),  # a backslash that is escaped joins nothing
        ("A=1\\#2 # x", ["A=1\\#2"]),
        ("A=1\\\\#2", ["A=1\\\\"]),
        ("A=1\u2028B=2", ["A=1\u2028B=2"]),  # for Slurm, only a line feed ends a line
    ],
)
def test_lines_end_where_slurm_ends_them(text: str, read: list[str]) -> None:
    assert read == [each.text for each in lines.read(text)]


def test_what_is_added_to_a_list_stands_once() -> None:
    text = files(inputs(extraConf="SlurmctldParameters=enable_configless,idle_on_node_suspend"))
    (line,) = (
        splitline
        for splitline in text["slurm.conf"].splitlines()
        if splitline.startswith("SlurmctldParameters")
    )
    assert "SlurmctldParameters=enable_configless,reconfig_on_restart,idle_on_node_suspend" == line
