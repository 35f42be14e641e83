"""docs/security.md says of each safeguard who can bring it about, and what it gives them, each with its test."""

from collections import Counter
from pathlib import Path

from docs.generate import safeguards

ROOT = Path(__file__).parents[2]


def test_the_page_lists_what_is_tried() -> None:
    page = (ROOT / "docs/security.md").read_text()

    assert page == safeguards.render(page), "make docs"
    listed = page.partition("<!-- safeguards -->")[2].partition("<!-- end of safeguards -->")[0]
    assert listed.count(" | `tests/") == len(list(safeguards.trials())) > 0


def test_somebody_tries_to_gain_from_each() -> None:
    assert set(safeguards.SAFEGUARDS) == {trial.safeguard for trial in safeguards.trials()}


def test_no_trial_is_listed_twice_nor_breaks_the_table() -> None:
    listed = list(safeguards.trials())

    for texts in ([one.way for one in listed], [one.test for one in listed]):
        assert [] == [text for text, count in Counter(texts).items() if count > 1]
    assert [] == [one for one in listed if {"|", "\n"} & set(one.way + one.gives)]
