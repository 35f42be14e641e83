"""Every ending of the table is played on the real systems."""

import re
from pathlib import Path

from docs.generate.endings import ENDINGS, row

PLAYED = Path(__file__).parents[1] / "integration"


def test_every_ending_is_played_on_the_real_systems() -> None:
    marks = re.findall(
        r"@pytest\.mark\.ending\((.*?)\)",
        "".join(path.read_text(encoding="utf-8") for path in PLAYED.glob("test_*.py")),
        flags=re.DOTALL,
    )
    played = {key for mark in marks for key in re.findall(r'"(.*?)"', mark)}

    keys = [ending.key for ending in ENDINGS]

    assert len(keys) == len(set(keys))
    assert set(keys) == played


def test_every_ending_has_a_line_of_its_own() -> None:
    lines = [row(ending) for ending in ENDINGS]

    assert len(lines) == len({cause for cause, _, _ in lines})
    assert all(seen != "—" or told != "—" for _, seen, told in lines)
