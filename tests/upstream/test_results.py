"""How Kubernetes' tests are compared: what only fails bridged is told, unless there is a listed reason."""

import re
from pathlib import Path

from tests.upstream import results
from tests.upstream.ledger import Ledger
from tests.upstream.results import FAILED, PASSED, Subject
from tests.upstream.selection import EXCUSED, LEFT_OUT, Excuse

REPORT = """<testsuites><testsuite>
<testcase name="[SynchronizedBeforeSuite]" status="passed"/>
<testcase name="[It] [sig-apps] Job should end [Conformance]" status="passed"/>
<testcase name="[It] [sig-apps] Job should fail" status="failed"><failure/></testcase>
<testcase name="[It] [sig-apps] Job is cut off, too" status="timedout"><failure/></testcase>
<testcase name="[It] [sig-apps] Job is left out" status="skipped"><skipped/></testcase>
<testcase name="[It] [sig-apps] Job is cut off" status="interrupted"><failure/></testcase>
</testsuite></testsuites>"""


def test_a_report_tells_what_ran_and_how(tmp_path: Path) -> None:
    file = tmp_path / "junit.xml"
    file.write_text(REPORT)

    assert results.read(file) == {
        "[sig-apps] Job should end [Conformance]": PASSED,
        "[sig-apps] Job should fail": FAILED,
    }
    assert results.read(tmp_path / "none.xml") == {}


def test_people_know_a_test_without_its_tags() -> None:
    assert results.short({"[sig-apps] Job should end [Conformance]": PASSED}) == {
        "[sig-apps] Job should end": PASSED
    }


def test_a_later_run_leaves_out_what_has_ended_in_both(tmp_path: Path) -> None:
    file = tmp_path / "outcomes.json"
    name = "[sig-apps] Job (one) ends"
    first = Ledger.read(file, "1.36.4").and_now({name: PASSED, "b": PASSED}, {name: FAILED})
    first.write(file)

    again = Ledger.read(file, "1.36.4")
    (pattern,) = again.settled()

    assert re.search(pattern, name)
    assert not re.search(pattern, f"{name} later")
    assert again.and_now({}, {name: PASSED, "b": FAILED}).bridged == {name: PASSED, "b": FAILED}
    assert Ledger.read(file, "1.37.0").plain == {}


def test_only_what_passes_plain_can_be_worse() -> None:
    plain = {"a": PASSED, "b": PASSED, "c": FAILED, "d": PASSED, "e": PASSED}
    bridged = {"a": PASSED, "b": FAILED, "c": FAILED, "d": FAILED, "f": FAILED}

    found = results.compare(plain, bridged, [Excuse(pattern="^d$", reason="Slurm's")])

    assert found == results.Comparison(
        both=("a",),
        excused={"d": "Slurm's"},
        worse=("b",),
        neither=("c",),
        unfinished=("e", "f"),
    )


SUBJECT = Subject(title="Tests", introduction=("of others",), left_out=LEFT_OUT, images="made here")


def test_the_page_names_every_test_and_every_reason() -> None:
    found = results.Comparison(
        both=("[sig-apps] one",),
        excused={"two": "of Slurm"},
        worse=("three",),
        neither=("four",),
        unfinished=("five",),
    )

    page = results.page(found, SUBJECT)

    for text in (
        "# Tests",
        "made here",
        "time ran out | 1 |",
        r"\[sig-apps\] one",
        "| two | of Slurm |",
        "* three",
        "* four",
        "* five",
    ):
        assert text in page
    for reason in LEFT_OUT.values():
        assert reason in page


def test_an_excuse_is_for_tests_that_are_run() -> None:
    assert len({each.pattern for each in EXCUSED}) == len(EXCUSED)
    assert not [each for each in EXCUSED if not each.reason or not each.pattern]
