"""What our check refuses of a parameter's value, Slurm's own parser refuses too, but for what docs/operator.md says; and it knows every name that Slurm has."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import assets, slurm
from sandbox.assets import Asset, AssetName
from slurmoperator.configuration import checking
from slurmoperator.configuration.parameters import SLURM_CONF, ParameterKind

VALUES = (
    *("", "0", "1", "-1", "007", "60", "70000", "4294967296", "99999999999999999999", "0x10"),
    *("4G", "5M", "1.5", "UNLIMITED", "infinite", "YES", "no", "maybe", "abc", "a,b=c"),
)
STRICTER: dict[str, frozenset[str]] = {}
"""By parameter: values that Slurm takes and we do not; docs/operator.md says so."""
_NAMES = re.compile(rb"(?<=\0)[A-Z][A-Za-z]{4,40}(?=\0)")


@pytest.fixture(scope="module")
def asset() -> Asset:
    return assets.resolve(AssetName.SLURM, report=lambda _: None)


def refused_by_us() -> Iterator[tuple[str, str]]:
    for parameter in SLURM_CONF.values():
        if parameter.kind is ParameterKind.REPEATED:
            continue
        for value in VALUES:
            if any(checking.check("slurm.conf", f"{parameter.name}={value}", "at")):
                yield parameter.name, value


def reads(asset: Asset, folder: Path, line: str) -> bool:
    """Whether Slurm's parser takes a file with this line."""
    return "Unable to process configuration file" not in complaint(asset, folder, line)


def complaint(asset: Asset, folder: Path, line: str) -> str:
    """What Slurm's parser says of a file with this line."""
    conf = folder / "slurm.conf"
    base = ("ClusterName=try", "SlurmctldHost=here(127.0.0.1)", "SlurmUser=root")
    conf.write_text("\n".join((*base, slurm.unpacked(asset).splitlines()[0], line, "")))
    done = subprocess.run(
        [asset.bin / "scontrol", "show", "hostnames", "a"],
        env={"SLURM_CONF": str(conf)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode >= 0, (line, done)
    return done.stderr


def test_what_we_refuse_slurm_refuses_too(asset: Asset, tmp_path: Path) -> None:
    assert reads(asset, tmp_path, "MinJobAge=60")
    assert not reads(asset, tmp_path, "MinJobAge=soon")
    stricter: dict[str, set[str]] = {}
    for name, value in refused_by_us():
        if reads(asset, tmp_path, f"{name}={value}"):
            stricter.setdefault(name, set()).add(value)
    assert stricter == STRICTER


def test_we_know_every_parameter_that_slurm_has(asset: Asset, tmp_path: Path) -> None:
    """Slurm's library has them as texts, among many others."""
    (library,) = slurm.libraries(asset).glob("slurm-wlm/libslurmfull.so")  # type: ignore[union-attr]
    found = {each.decode() for each in _NAMES.findall(library.read_bytes())}
    assert "SlurmdPidFile" in found
    unknown = sorted(each for each in found if each.lower() not in SLURM_CONF)
    assert [] == [each for each in unknown if knows(asset, tmp_path, each)]


def knows(asset: Asset, folder: Path, name: str) -> bool:
    """Whether Slurm's parser has a parameter of this name."""
    return "unrecognized key" not in complaint(asset, folder, f"{name}=1")
