"""What docstrings, comments and pages say about the code is true."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.definitions import exists
from tests.architecture.sources import PACKAGES, PRODUCT, ROOT, docstrings, files, parsed

_DOTTED = re.compile(
    rf"`((?:{'|'.join((*(name.removeprefix('dev/') for name in PACKAGES), 'tests', 'client', 'exporter'))})(?:\.\w+)+)(?:\(\))?`"
)
_PATH = re.compile(
    r"`((?:bridge|webhook|extender|agent|controllers|leader|slurmjobs|slurmoperator|slurmcli|slurmruntime|dev|tests|deploy|docs|client|exporter|containers)/[\w./-]*)`"
)
_TEST = re.compile(r"`tests/([\w/]+)\.py::(\w+)")
_PAGES = ("README.md", "CONTRIBUTING.md")


def test_modules_and_names_that_docstrings_mention_exist() -> None:
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in files(*PACKAGES, "tests")
        for text in docstrings(parsed(path))
        for name in _DOTTED.findall(text)
        if not exists(name)
    ]
    assert not missing, missing


def test_a_name_that_is_not_there_is_noticed() -> None:
    there = (
        "slurmruntime.values.names.GATE",
        "slurmruntime.kube.cache.Cache.observe",
        "slurmruntime.kube.errors.Unavailable.transient",
        "bridge.domain.lifecycle.rules",
        "bridge.reconcile.program.Program.settings",
    )
    gone = (
        "slurmruntime.values.names.GATES",
        "slurmruntime.kube.cache.Cache.observes",
        "slurmruntime.kube.errors.Unavailable.transients",
        "bridge.domain.lifecycle.ruling",
        "bridge.kubernetes.cache",
    )
    assert [True] * 5 + [False] * 5 == [exists(name) for name in (*there, *gone)]


def test_files_that_the_pages_mention_exist() -> None:
    missing = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in _pages()
        for name in _PATH.findall(page.read_text())
        if not list(ROOT.glob(name.rstrip("/")))
    ]
    assert not missing, missing


def test_tests_that_the_pages_mention_exist() -> None:
    mentioned = [
        (page, f"tests.{file.replace('/', '.')}.{name}")
        for page in _pages()
        for file, name in _TEST.findall(page.read_text())
    ]
    missing = [f"{page.relative_to(ROOT)}: {name}" for page, name in mentioned if not exists(name)]

    assert mentioned
    assert not missing, missing


def test_every_package_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in files(*PRODUCT, "client", "exporter")
        if path.name == "__init__.py" and not next(docstrings(parsed(path)), "")
    ]
    assert not silent, silent


def _pages() -> Iterator[Path]:
    yield from (ROOT / name for name in _PAGES)
    yield from sorted((ROOT / "docs").rglob("*.md"))
