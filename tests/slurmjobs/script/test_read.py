"""A header is read with all its faults at once, each with its line, and reading never fails."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slurmjobs.script import body, read, words
from slurmjobs.script.directives import LONGEST_DIRECTIVE
from slurmjobs.script.getopt import MOST_OPTIONS
from slurmjobs.script.options import BY_FIELD, CPUS_PER_TASK, HOLD, OPTIONS, TIME, Treatment
from slurmjobs.script.words import UnreadableLine
from tests.slurmjobs.cases import HEADERS

SPICE = st.sampled_from(
    [
        "#SBATCH ",
        "#PBS ",
        "#BSUB ",
        "--",
        "-",
        "=",
        '"',
        "'",
        "\\",
        "#",
        ":",
        " ",
        "\n",
        "\t",
        "hetjob",
        "0x",
        "@",
        "%",
    ]
    + [f"--{option.name}" for option in OPTIONS]
)
HEADER = st.lists(SPICE | st.text(max_size=6) | st.sampled_from(HEADERS), max_size=12).map("".join)


def script(*lines: str) -> str:
    return "\n".join(("#!/bin/sh", *lines, "true", ""))


@settings(max_examples=300)
@given(HEADER)
@example("#SBATCH --time=" + "9" * 5000)
@example("#SBATCH --begin=uts" + "9" * 12)
@example("#PBS -l nodes=" + "9" * 5000)
@example("#PBS -l nodes=[1-2]+a\\ b")
@example("#PBS -W umask=9")
def test_any_header_is_read(header: str) -> None:
    read.script(f"#!/bin/sh\n{header}\ntrue\n")


@settings(max_examples=200)
@given(
    st.sampled_from([o for o in OPTIONS if o.form]),
    st.text(max_size=12) | st.from_regex(r"[-0-9a-z:,.@%*=/]{1,12}"),
)
@example(BY_FIELD["time"], "1-2:3:4")
@example(BY_FIELD["begin"], "12/24/30 3pm")
@example(BY_FIELD["memBind"], "v,map_mem:0*2,1")
def test_any_value_is_read_or_refused(option, text) -> None:  # type: ignore[no-untyped-def]
    read.script(script(), {option.field: text})


def test_all_faults_are_told_at_once_with_their_lines() -> None:
    found = read.script(
        script(
            "#SBATCH --mem=4Q --nothing-such",
            "#SBATCH --uid=0 -N",
        )
    )
    assert [
        ("line 2", "--mem=4Q"),
        ("line 2", "sbatch has"),
        ("line 3", "--uid is"),
        ("line 3", "-N needs a"),
    ] == [
        (fault.path, fault.message[: len(start)])
        for fault, start in zip(
            found.faults, ("--mem=4Q", "sbatch has", "--uid is", "-N needs a"), strict=True
        )
    ]


def test_a_near_name_is_suggested() -> None:
    (fault,) = read.script(script("#SBATCH --cpu-per-task=2")).faults
    assert "did you mean --cpus-per-task?" in fault.message


def test_what_its_author_may_not_have_meant_is_a_warning() -> None:
    found = read.script(
        "#!/bin/sh\n #SBATCH -N1\n##SBATCH -N1\n#SLURM -N1\n#SBATCH --wait\ntrue\n#SBATCH -N1\n"
    )
    assert [2, 3, 4, 7, 5] == [int(warning.path.split()[1]) for warning in found.warnings]
    assert not found.faults


def test_fields_are_stronger_than_the_script() -> None:
    text = script("#SBATCH -c1 -t5")
    options = read.script(text, {"cpusPerTask": 4, "hold": True, "time": "1:00:00"}).options
    assert (4, True, 60) == (options.get(CPUS_PER_TASK), options.get(HOLD), options.get(TIME))
    assert "fields.cpusPerTask" == options.path(CPUS_PER_TASK)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"nothingSuch": 1}, "fields.nothingSuch"),
        ({"hold": "yes"}, "fields.hold"),
        ({"cpusPerTask": [1]}, "fields.cpusPerTask"),
        ({"cpusPerTask": True}, "fields.cpusPerTask"),
        ({"uid": 0}, "fields.uid"),
        ({"mem": "much"}, "fields.mem"),
    ],
)
def test_a_field_is_refused_by_its_name(fields: dict[str, object], path: str) -> None:
    assert [path] == [fault.path for fault in read.script(script(), fields).faults]


def test_what_is_refused_says_what_to_do() -> None:
    for option in OPTIONS:
        if option.treatment is Treatment.REFUSED:
            value = (
                {}
                if option.form is None
                else {option.field: True if option.takes.name == "NOTHING" else "1"}
            )
            (fault,) = read.script(script(), value).faults
            assert fault.message.startswith(f"--{option.name} is not supported: ")


def test_a_header_has_bounds() -> None:
    many = read.script(script(*["#SBATCH --hold"] * (MOST_OPTIONS + 5)))
    assert [f"line {MOST_OPTIONS + 2}"] == [fault.path for fault in many.faults]
    long = read.script(script(f"#SBATCH --comment={'a' * LONGEST_DIRECTIVE}"))
    assert ["line 2"] == [fault.path for fault in long.faults]


def test_a_script_has_a_bound() -> None:
    (fault,) = body.faults("#!/bin/sh\n" + "#" * body.LARGEST_SCRIPT_BYTES)
    assert "4194304" in fault.message


def test_bytes_that_are_no_text_are_told_with_their_line() -> None:
    _, (fault,) = body.decode(b"#!/bin/sh\n\xff\n")
    assert ("line 2", "byte 11 of the script is not UTF-8 text") == (fault.path, fault.message)


@pytest.mark.parametrize("line", ["a :b", "'open", '"open'])
def test_a_line_that_cannot_be_split_says_why(line: str) -> None:
    with pytest.raises(UnreadableLine):
        list(words.split(line))


def test_a_byte_order_mark_is_named_and_the_rest_is_read() -> None:
    found = read.script("\ufeff#!/bin/sh\n#SBATCH --time=5\nhostname\n")
    (fault,) = found.faults
    assert "it begins with a byte-order mark" in fault.message
    assert not found.warnings
    assert ["time"] == [each.option.field for each in found.options.all]
