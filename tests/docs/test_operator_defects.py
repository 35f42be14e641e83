"""The page of defects has a row for each of the thirty, and each row names a test or says why there is none."""

import re

from tests.architecture.sources import ROOT

DEFECTS = 30


def test_each_defect_has_a_test_or_a_reason() -> None:
    page = (ROOT / "docs/operator-defects.md").read_text()
    rows = re.findall(r"^\| D(\d+) \| (.+) \| (.+) \|$", page, re.MULTILINE)

    assert [str(number) for number in range(1, DEFECTS + 1)] == [number for number, _, _ in rows]
    for number, _, ours in rows:
        assert re.search(r"`tests/[\w/]+\.py::\w+`|^open: |^does not apply", ours), number
