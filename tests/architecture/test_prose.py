"""What docstrings, comments and pages say about the code is true."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.sources import PACKAGES, PRODUCT, ROOT, docstrings, files, parsed

_DOTTED = re.compile(rf"`((?:{'|'.join((*PACKAGES, 'tests', 'client'))})(?:\.\w+)+)(?:\(\))?`")
_PATH = re.compile(
    r"`((?:bridge|webhook|extender|controllers|sandbox|benchmarks|tests|deploy|docs|client)/[\w./-]*)`"
)
_PAGES = ("README.md", "CONTRIBUTING.md")


def test_modules_and_names_that_docstrings_mention_exist() -> None:
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in files(*PACKAGES, "tests")
        for text in docstrings(parsed(path))
        for name in _DOTTED.findall(text)
        if not _exists(name)
    ]
    assert not missing, missing


def test_files_that_the_pages_mention_exist() -> None:
    missing = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in _pages()
        for name in _PATH.findall(page.read_text())
        if not list(ROOT.glob(name.rstrip("/")))
    ]
    assert not missing, missing


def test_every_package_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in files(*PRODUCT)
        if path.name == "__init__.py" and not next(docstrings(parsed(path)), "")
    ]
    assert not silent, silent


def _pages() -> Iterator[Path]:
    yield from (ROOT / name for name in _PAGES)
    yield from sorted((ROOT / "docs").rglob("*.md"))


def _exists(name: str) -> bool:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[cut:]:
            if not hasattr(found, attribute) and attribute not in getattr(
                found, "__annotations__", ()
            ):
                return False
            found = getattr(found, attribute, None)
        return True
    return False
