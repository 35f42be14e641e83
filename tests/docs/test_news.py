"""News of the next release can be assembled: names, kinds and links of the files in docs/news are right."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

NEWS = ROOT / "docs/news"
FILES = sorted(path for path in NEWS.glob("*.md") if path.name != "README.md")
KINDS = [
    kind["directory"]
    for kind in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["towncrier"]["type"]
]
NAME = re.compile(rf"[a-z0-9]+(-[a-z0-9]+)*\.({'|'.join(KINDS)})\.md")
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")


def faults(path: Path) -> list[str]:
    """What keeps a file from becoming an entry of the changelog."""
    text = path.read_text()
    return [
        fault
        for fault, holds in (
            (
                f"is not called SUBJECT.KIND.md, with a kind of {KINDS}",
                not NAME.fullmatch(path.name),
            ),
            ("begins with a bullet", text.lstrip().startswith(("*", "-", "#"))),
            ("does not end with a full stop", not text.rstrip().endswith(".")),
            *(
                (f"links to {link}, which is not in the repository", not (ROOT / link).exists())
                for link in LINK.findall(text)
                if "://" not in link
            ),
        )
        if holds
    ]


def test_files_are_named_and_written_as_agreed() -> None:
    wrong = {path.name: faults(path) for path in FILES if faults(path)}
    assert {} == wrong, f"{wrong}: see docs/news/README.md"


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        pytest.param(
            "stale-nodes.fixed.md", "Nodes go ([page](docs/nodes.md#limits)).\n", 0, id="good"
        ),
        pytest.param("stale-nodes.bugfix.md", "Nodes go.\n", 1, id="unknown kind"),
        pytest.param("Stale_nodes.fixed.md", "Nodes go.\n", 1, id="odd name"),
        pytest.param("nodes.added.md", "* Nodes go.\n", 1, id="bullet"),
        pytest.param("nodes.added.md", "", 1, id="empty"),
        pytest.param("nodes.added.md", "See [page](docs/none.md).\n", 1, id="dead link"),
    ],
)
def test_faults_are_noticed(tmp_path: Path, name: str, text: str, count: int) -> None:
    (tmp_path / name).write_text(text)
    assert count == len(faults(tmp_path / name))


def test_kinds_are_those_that_the_page_explains() -> None:
    explained = re.findall(r"^\| `(\w+)` \|", (NEWS / "README.md").read_text(), re.MULTILINE)
    assert explained == KINDS


def test_news_become_a_release_above_the_last_one(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    news = tmp_path / "docs/news"
    news.mkdir(parents=True)
    shutil.copy(NEWS / "template.jinja", news)
    (news / "stale-nodes.fixed.md").write_text("Nodes go,\nat once.\n")
    (news / "old-flag.breaking.md").write_text("`--old` is gone.\n")

    command = ("build", "--keep", "--version", "9.0.0", "--date", "2030-01-01", "--dir", tmp_path)
    subprocess.run([sys.executable, "-m", "towncrier", *command], check=True, capture_output=True)

    entries = (tmp_path / "CHANGELOG.md").read_text().split("\n## ")
    assert (
        "9.0.0 (2030-01-01)\n\n### Before you upgrade\n\n* `--old` is gone.\n\n"
        "### Fixed\n\n* Nodes go,\n  at once.\n" == entries[1]
    )
    assert (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1:] == entries[2:]
