"""The Dockerfile, read. What `make image` makes of it is tested in tests/realnodes/test_image.py."""

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.chart.rendering import Rendered

ROOT = Path(__file__).parents[2]


@dataclass(slots=True)
class Stage:
    """A FROM and what follows."""

    base: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, instruction: str) -> list[str]:
        return [arguments for name, arguments in self.instructions if name == instruction]


@pytest.fixture(scope="module")
def stages() -> list[Stage]:
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    found: list[Stage] = []
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        instruction, _, arguments = line.partition(" ")
        if instruction == "FROM":
            found.append(Stage(base=arguments))
        elif found and instruction:
            found[-1].instructions.append((instruction, arguments))
    return found


def test_every_stage_starts_from_the_given_base(stages: list[Stage]) -> None:
    known = {stage.base.split()[-1] for stage in stages}
    begins = {stage.base.split()[0] for stage in stages}
    assert begins - known == {"${BASE_IMAGE}"}
    assert "ARG BASE_IMAGE=python:3.13-slim" in (ROOT / "Dockerfile").read_text().splitlines()


def test_what_comes_from_the_net_comes_by_hash(stages: list[Stage]) -> None:
    (install,) = (run for run in stages[0].all("RUN") if "pip" in run)

    assert {"--require-hashes", "--only-binary", "/requirements.txt"} <= set(install.split())
    for stage in stages:
        assert stage.all("ADD") == []
        for run in stage.all("RUN"):
            assert not re.search(r"curl|wget|apt|git|://", run)
            assert (
                run is install
                or "pip" not in run
                or {"--no-index", "--no-deps"} & set(run.split())
                or "rm -rf" in run
            )


def test_the_exporter_is_a_target_of_its_own(stages: list[Stage]) -> None:
    (exporter,) = (stage for stage in stages if stage.base.endswith(" AS exporter"))
    (installed,) = (stage for stage in stages if stage.base.endswith(" AS exporter-installed"))
    assert ["--from=exporter-installed /opt/venv /opt/venv"] == exporter.all("COPY")
    assert "slurm_bridge" not in " ".join(installed.all("RUN"))
    assert ['["slurm-exporter"]'] == exporter.all("ENTRYPOINT")


def test_it_runs_as_the_user_of_the_chart(stages: list[Stage], chart: Rendered) -> None:
    pod = chart.of_kind("Deployment")["slurm-bridge-extender"]["spec"]["template"]["spec"]
    security = pod["securityContext"]
    (runtime,) = (stage for stage in stages if stage.base.endswith(" AS runtime"))

    assert runtime.instructions[-1] == ("USER", f"{security['runAsUser']}:{security['runAsGroup']}")
    for stage in stages[-2:]:
        assert stage.base.startswith("runtime ")
        assert stage.all("USER") == stage.all("RUN") == []


def test_every_program_of_the_chart_is_inside(stages: list[Stage], chart: Rendered) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    programs = {
        container["args"][0]
        for deployment in chart.of_kind("Deployment").values()
        for container in deployment["spec"]["template"]["spec"]["containers"]
        if "command" not in container
    }

    assert stages[-1].all("ENTRYPOINT") == ['["python", "-m"]']
    assert programs <= set(packages)


def test_all_that_the_wheels_are_made_of_is_sent_to_the_builder() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    sent = {line[1:] for line in ignored if line.startswith("!")}
    needed = {"requirements.txt", "requirements-build.txt"}
    for folder in (".", "client", "exporter"):
        project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())
        files = [
            "pyproject.toml",
            project["project"]["readme"],
            *project["project"]["license-files"],
        ]
        wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
        # A folder is sent as a whole where only a file of it is put into the wheel.
        folders = {Path(file).parent.as_posix() for file in wheel.get("force-include", ())}
        files += (*wheel["packages"], *folders)
        needed |= {(Path(folder) / file).as_posix() for file in files}

    assert needed == sent


def test_the_image_is_built_with_what_developers_build_with() -> None:
    def pins(name: str) -> set[str]:
        return set(re.findall(r"^[\w.-]+==\S+", (ROOT / name).read_text(), re.MULTILINE))

    assert {pin.partition("==")[0] for pin in pins("requirements-build.txt")} >= {"hatchling"}
    assert pins("requirements-build.txt") <= pins("requirements-dev.txt")
