"""deploy/slurm-bridge.openvex.json has OpenVEX's form, and each of its statements is true of this tree.

The form: https://github.com/openvex/spec. A new kind of statement needs its test here.
"""

import ast
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from sandbox.errors import SandboxError
from sandbox.image import bom, release
from sandbox.image.bom import Component
from tests.architecture import sources

ROOT = Path(__file__).parents[2]
IN_IMAGES = (*sources.PRODUCT, "leader", "client/slurmclient", "exporter/slurmexporter")

STARTS_PROGRAMS = {
    "slurmcli/batch/logs.py": "`kubectl slurm logs` becomes kubectl, on the machine of whoever types it",
    "client/slurmclient/transport/tokens.py": "slurmc's TokenCommand, which no program that serves has",
}
_STARTING = ("exec", "fork", "popen", "posix_spawn", "spawn", "startfile", "system")
"""How functions of `os` begin that start a program."""
_MODULES = {"multiprocessing", "pty", "subprocess"}


class Part(BaseModel):
    """A struct of the format, to which nothing may be added."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Vulnerability(Part):
    name: Annotated[str, Field(pattern=r"^CVE-\d{4}-\d{4,}$")]


class Subcomponent(Part):
    id: Annotated[str, Field(alias="@id", pattern=r"^pkg:(deb/debian|pypi)/[a-z0-9.+-]+$")]


class Product(Part):
    id: Annotated[str, Field(alias="@id", pattern=r"^pkg:oci/slurm-(bridge|exporter)$")]
    subcomponents: Annotated[list[Subcomponent], Field(min_length=1)]


class Statement(Part):
    """What does not affect us; OpenVEX requires a justification of it."""

    vulnerability: Vulnerability
    products: Annotated[list[Product], Field(min_length=1)]
    status: Literal["not_affected"]
    justification: Literal["component_not_present", "vulnerable_code_not_in_execute_path"]
    impact_statement: Annotated[str, Field(min_length=1)]


class Document(Part):
    context: Annotated[Literal["https://openvex.dev/ns/v0.2.0"], Field(alias="@context")]
    id: Annotated[str, Field(alias="@id", pattern=r"^https://")]
    author: Annotated[str, Field(min_length=1)]
    timestamp: datetime
    version: Annotated[int, Field(ge=1)]
    statements: Annotated[list[Statement], Field(min_length=1)]


@pytest.fixture(scope="module")
def document() -> Document:
    return Document.model_validate_json(release.VEX.read_bytes())


def stated(document: Document, justification: str) -> set[str]:
    """The packages of all statements with this justification."""
    return {
        part.id
        for statement in document.statements
        if statement.justification == justification
        for product in statement.products
        for part in product.subcomponents
    }


def test_the_file_has_the_format_and_no_vulnerability_twice(document: Document) -> None:
    assert document.timestamp.tzinfo is not None
    its = [statement.vulnerability.name for statement in document.statements]
    assert len(its) == len(set(its))


def test_no_program_that_serves_starts_another(document: Document) -> None:
    tools = stated(document, "vulnerable_code_not_in_execute_path")

    assert tools == {
        f"pkg:deb/debian/{name}" for name in ("apt", "coreutils", "perl-base", "tar", "util-linux")
    }
    starting = {
        str(path.relative_to(ROOT))
        for path in sources.files(*IN_IMAGES)
        if any(starts(sources.parsed(path)))
    }
    assert set(STARTS_PROGRAMS) == starting
    ours = sources.files(*sources.PRODUCT, "leader", "exporter/slurmexporter")
    assert not [path for path in ours if "TokenCommand" in path.read_text()]


@pytest.mark.parametrize("chart", ["chart", "exporter/chart", "operator/chart"])
def test_no_chart_starts_another_program_in_our_images(chart: str) -> None:
    lines = {
        line.strip()
        for template in (ROOT / "deploy" / chart / "templates").rglob("*.yaml")
        for line in template.read_text().splitlines()
    }
    commands = {line for line in lines if line.startswith(("command:", "exec:"))}
    assert commands <= {"command: [kube-scheduler]"}, "which has an image of its own"


def test_a_package_that_is_said_to_be_absent_makes_no_release(document: Document) -> None:
    absent = stated(document, "component_not_present")

    assert {"pkg:pypi/pip"} == absent
    for name in (purl.removeprefix("pkg:pypi/") for purl in absent):
        with pytest.raises(SandboxError, match=f"{name} 1, expected none"):
            bom.check("ours", (Component(kind="pypi", name=name, version="1"),), release.pinned())


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess",
        "from subprocess import run",
        "import os\nos.execvp('x', [])",
        "import os\nos.posix_spawn('x', [], {})",
        "from os import system",
        "import asyncio\nasyncio.create_subprocess_shell('x')",
        "import pty",
    ],
)
def test_a_start_of_a_program_is_seen(code: str) -> None:
    assert any(starts(ast.parse(code)))
    assert not any(starts(ast.parse("import os\nos.path.exists('x')")))


def starts(tree: ast.AST) -> Iterator[str]:
    """Yield what starts a program in a file."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names if name.name.split(".")[0] in _MODULES)
            case ast.ImportFrom(module=str() as module, names=names):
                yield from (name.name for name in names if _is_start(module, name.name))
            case ast.Attribute(value=ast.Name(id=module), attr=name) if _is_start(module, name):
                yield name


def _is_start(module: str, name: str) -> bool:
    return (
        module.partition(".")[0] in _MODULES
        or (module == "os" and name.startswith(_STARTING))
        or name.startswith("create_subprocess")
    )
