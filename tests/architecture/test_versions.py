"""One version everywhere: packages, charts and the newest entry of the changelog."""

import re
import tomllib

import pytest
import yaml

from bridge import __version__
from tests.architecture.sources import ROOT

PROJECTS = ("pyproject.toml", *(f"{name}/pyproject.toml" for name in ("client", "dev", "exporter")))
CHARTS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "deploy").rglob("Chart.yaml"))


@pytest.mark.parametrize("project", PROJECTS)
def test_a_package_has_the_version(project: str) -> None:
    assert __version__ == tomllib.loads((ROOT / project).read_text())["project"]["version"]


@pytest.mark.parametrize("chart", CHARTS)
def test_a_chart_has_the_version(chart: str) -> None:
    content = yaml.safe_load((ROOT / chart).read_text())
    assert {__version__} == {content["version"], content["appVersion"]}


def test_the_changelog_begins_with_the_version() -> None:
    releases = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert __version__ == releases[0]
