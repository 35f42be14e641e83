"""The Dockerfile, read: there is no Docker where the tests run."""

import re
import shutil
import subprocess
import sys
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
    assert [stage.base.split()[0] for stage in stages] == ["${BASE_IMAGE}"] * 3
    assert "ARG BASE_IMAGE=python:3.13-slim" in (ROOT / "Dockerfile").read_text().splitlines()


def test_dependencies_come_by_hash_and_nothing_else_from_the_net(stages: list[Stage]) -> None:
    (install,) = (run for run in stages[0].all("RUN") if "pip" in run)

    assert {"--require-hashes", "--only-binary", "/requirements.txt"} <= set(install.split())
    for stage in stages:
        assert stage.all("ADD") == []
        assert not re.search(r"curl|wget|apt|git|://", " ".join(stage.all("RUN")))
        assert stage is stages[0] or "pip" not in " ".join(stage.all("RUN"))


def test_the_exporter_is_a_target_of_its_own(stages: list[Stage]) -> None:
    (exporter,) = (stage for stage in stages if stage.base.endswith(" AS exporter"))
    copied = {line.split()[0] for line in exporter.all("COPY") if not line.startswith("--from")}
    assert {"client/slurmclient", "exporter/slurmexporter", "exporter/LICENSE"} == copied
    assert ['["python", "-m", "slurmexporter"]'] == exporter.all("ENTRYPOINT")
    assert ["65532:65532"] == exporter.all("USER")


def test_it_runs_as_the_user_of_the_chart(stages: list[Stage], chart: Rendered) -> None:
    pod = chart.of_kind("Deployment")["slurm-bridge-extender"]["spec"]["template"]["spec"]
    security = pod["securityContext"]
    after_user = [name for name, _ in stages[-1].instructions]

    assert stages[-1].all("USER") == [f"{security['runAsUser']}:{security['runAsGroup']}"]
    assert not {"RUN", "COPY"} & set(after_user[after_user.index("USER") :])


def test_every_program_of_the_chart_is_inside(stages: list[Stage], chart: Rendered) -> None:
    copied = {line.split()[0] for line in stages[-1].all("COPY") if not line.startswith("--from")}
    programs = {
        container["args"][0]
        for deployment in chart.of_kind("Deployment").values()
        for container in deployment["spec"]["template"]["spec"]["containers"]
        if "command" not in container
    }

    assert stages[-1].all("ENTRYPOINT") == ['["python", "-m"]']
    assert programs | {"bridge", "client/slurmclient", "LICENSE"} == copied
    assert [source for source in copied if not (ROOT / source).exists()] == []


def test_the_programs_find_all_of_our_modules_inside(stages: list[Stage], tmp_path: Path) -> None:
    for line in stages[-1].all("COPY"):
        source, _, target = line.partition(" ")
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, tmp_path / target)
    programs = "import controllers.__main__, extender.__main__, webhook.__main__"
    ours = "{'bridge', 'controllers', 'extender', 'slurmclient', 'webhook'}"
    files = f"[m.__file__ for n, m in sys.modules.items() if n.partition('.')[0] in {ours}]"
    found = subprocess.run(
        (sys.executable, "-c", f"import sys\n{programs}\nprint(*{files}, sep='\\n')"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    assert [] == [file for file in found.stdout.split() if not file.startswith(str(tmp_path))]


def test_what_is_copied_is_sent_to_the_builder(stages: list[Stage]) -> None:
    sent = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    copied = {
        line.split()[0]
        for stage in stages
        for line in stage.all("COPY")
        if not line.startswith("--from")
    }

    assert copied == sent
