"""What the Dockerfile's steps made: small, without pip, and runs as nobody on a file system it cannot write."""

from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from bridge import __version__
from sandbox import assets
from sandbox.assets import Asset, AssetName
from sandbox.client import Sandbox
from sandbox.image import base, bom, layout, ours
from sandbox.image.building import TREE
from tests.realnodes.containers import ENDS_S
from tests.servers import fresh_namespace, wait_until

pytestmark = pytest.mark.real_all

MOST_BYTES = 120_000_000
BRIDGE, EXPORTER = f"slurm-bridge:{__version__}", f"slurm-exporter:{__version__}"
PYTHON = "3.13"
"""As in the Dockerfile's own base. The tests run on whatever the machine has, from 3.11 on."""
EXAMINE = """
import importlib.util, os, sys
print(sys.version.split()[0], os.getuid())
print([name for name in ("pip", "ensurepip", "setuptools") if importlib.util.find_spec(name)])
for folder in ("/", "/tmp", "/opt/venv"):
    try:
        open(folder + "/written", "w")
    except OSError as error:
        print(error.strerror)
"""
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "webhook": (BRIDGE, {"args": ["webhook", "--help"]}),
    "extender": (BRIDGE, {"args": ["extender", "--help"]}),
    "controllers": (BRIDGE, {"args": ["controllers", "--help"]}),
    "operator": (BRIDGE, {"args": ["slurmoperator", "--help"]}),
    "renamed": (BRIDGE, {"args": ["cluster", "--help"]}),
    "companion": (BRIDGE, {"args": ["jobs.companions.collector", "part", "[]"]}),
    "plugin": (BRIDGE, {"command": ["kubectl-slurm", "--help"]}),
    "version": (BRIDGE, {"command": ["slurm-bridge", "version"]}),
    "exporter": (EXPORTER, {"args": ["--help"]}),
    "inside": (BRIDGE, {"command": ["python", "-c", EXAMINE]}),
    "inside-exporter": (EXPORTER, {"command": ["python", "-c", EXAMINE]}),
}


def test_it_is_small_and_nothing_in_it_installs(archives: dict[str, Path]) -> None:
    for archive in archives.values():
        held = layout.read(archive)
        names = {Path(file).name for file in held.files}

        assert held.compressed_bytes <= MOST_BYTES
        assert not {name for name in names if name.startswith(("pip-", "setuptools-"))}
        assert not {"pip", "pip3", "ensurepip", "apt", "dpkg"} & names


def test_its_bill_of_materials_names_the_lock_our_own_packages_and_the_base(
    archives: dict[str, Path],
) -> None:
    """On the base that we make; of a public one, Debian's half is what its own dpkg says."""
    python = assets.where([AssetName.PYTHON])[AssetName.PYTHON]
    assert isinstance(python, Asset)
    below = {
        ("deb", name, version)
        for name, version in ours.packages_of(python).items()
        if name not in base.FOR_BUILDING
    }
    assert below
    for name, archive in archives.items():
        found = bom.components(layout.read(archive, bom.is_telling).data)
        own = {("pypi", each, __version__) for each in (name, "slurm-client")}

        assert {(part.kind, part.name, part.version) for part in found} == below | own | locked()


def locked() -> set[tuple[str, str, str]]:
    """What pip installs of the lock: without what is for other systems."""
    text = (TREE / "requirements.txt").read_text()
    lines = (line.rstrip(" \\") for line in text.splitlines() if not line.startswith(" "))
    wanted = [Requirement(line) for line in lines]
    return {
        ("pypi", bom.normalized(each.name), str(each.specifier).removeprefix("=="))
        for each in wanted
        if each.marker is None or each.marker.evaluate({"python_version": PYTHON})
    }


def test_every_program_answers_as_nobody_on_a_read_only_root(bare: Sandbox) -> None:
    said = _logs(bare)

    for program in (
        *("webhook", "extender", "controllers", "operator", "renamed"),
        *("plugin", "exporter"),
    ):
        assert "usage" in said[program].lower(), said[program]
    assert "use `python -m slurmoperator`" in said["renamed"]
    assert said["companion"] == "0 files, 0 bytes\n"  # by its name of the release before
    assert said["version"].strip() == __version__
    for name in ("inside", "inside-exporter"):
        who, tools, *refusals = said[name].splitlines()
        assert who.startswith(PYTHON)
        assert who.endswith(" 65532")
        assert tools == "[]"
        assert refusals == ["Read-only file system"] * 3


def _logs(sandbox: Sandbox) -> dict[str, str]:
    """Run every call as a container of one pod, without any right; return what each printed."""
    security = {
        "runAsNonRoot": True,  # without a uid: the kubelet takes the image's, and refuses root
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    containers = [
        {
            "name": name,
            "image": image,
            "imagePullPolicy": "Never",
            "securityContext": security,
            **call,
        }
        for name, (image, call) in CALLS.items()
    ]
    with fresh_namespace(sandbox, labels={}) as namespace:
        path = f"/api/v1/namespaces/{namespace}/pods"
        spec = {"restartPolicy": "Never", "containers": containers}
        sandbox.admin.create(path, {"metadata": {"name": "calls"}, "spec": spec})
        wait_until(
            lambda: (
                sandbox.admin.get(f"{path}/calls")["status"]["phase"] in ("Succeeded", "Failed")
            ),
            ENDS_S,
            sandbox=sandbox,
        )
        statuses = sandbox.admin.get(f"{path}/calls")["status"]["containerStatuses"]
        assert {
            status["name"]: status["state"]["terminated"]["exitCode"] for status in statuses
        } == (dict.fromkeys(CALLS, 0))
        return {
            name: sandbox.kubectl("-n", namespace, "logs", "calls", "-c", name) for name in CALLS
        }
