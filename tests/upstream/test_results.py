"""How Kubernetes' tests are compared: what only fails bridged is told, unless there is a listed reason."""

from pathlib import Path

from tests.upstream import results
from tests.upstream.results import FAILED, PASSED
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
        "[sig-apps] Job should end": PASSED,
        "[sig-apps] Job should fail": FAILED,
    }


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


def test_the_page_names_every_test_and_every_reason() -> None:
    found = results.Comparison(
        both=("[sig-apps] one",),
        excused={"two": "of Slurm"},
        worse=("three",),
        neither=("four",),
        unfinished=("five",),
    )

    page = results.page(found, "1.36.4")

    for text in (
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
