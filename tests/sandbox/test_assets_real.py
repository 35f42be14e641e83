"""The real programs: from the cache, fetched or built once. Only these tests may need the network."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from sandbox import assets
from sandbox.assets import Asset, AssetName
from sandbox.assets.errors import FetchError
from sandbox.assets.progress import Teller
from sandbox.assets.signature import Verifier
from slurmruntime.process.clock import SystemClock
from tests.sandbox.openpgp import Key
from tests.servers import is_offline


@pytest.fixture(scope="module")
def real() -> dict[AssetName, Asset]:
    absent = [a for a in assets.where(assets.USUAL).values() if isinstance(a, assets.Absent)]
    if is_offline() and absent:
        pytest.skip(f"offline, and {absent[0].reason}")
    with assets.shown(sys.stderr) as report:
        return assets.resolve_all(assets.USUAL, report=report)


@pytest.mark.parametrize(
    ("name", "command", "expected"),
    [
        (AssetName.SLURM, ("slurmctld", "-V"), "slurm"),
        (AssetName.SLURM, ("slurmrestd", "-V"), "slurm"),
        (AssetName.SLURM, ("mariadbd", "--version"), "MariaDB"),
        (AssetName.KUBE, ("kube-apiserver", "--version"), "Kubernetes v"),
        (AssetName.KUBE, ("kube-scheduler", "--version"), "Kubernetes v"),
        (AssetName.KUBE, ("etcd", "--version"), "etcd Version: 3"),
        (AssetName.KUBE, ("kwok", "--version"), "kwok"),
        (AssetName.HELM, ("helm", "version", "--short"), "v"),
    ],
)
def test_the_programs_run(
    real: dict[AssetName, Asset], name: AssetName, command: tuple[str, ...], expected: str
) -> None:
    program, *arguments = command
    done = subprocess.run(
        [real[name].bin / program, *arguments], check=True, capture_output=True, text=True
    )

    assert expected in done.stdout


def test_without_gpgv_a_wheel_verifies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if is_offline():
        pytest.skip("offline, and the wheel is not cached")
    monkeypatch.setenv("PATH", "/nowhere")
    day = timedelta(days=1)
    now = SystemClock().now()
    known = Key(created=now - 9 * day)
    expired = Key(created=now - 9 * day, valid_s=int(day.total_seconds()))
    keyring = tmp_path / "keyring.gpg"
    keyring.write_bytes(known.keyring() + expired.keyring())
    trusted = frozenset({known.fingerprint, expired.fingerprint})
    verifier = Verifier(keyring=keyring, trusted=trusted)
    tell = Teller("slurm", lambda _: None)

    signed = known.clear_sign("Suite: testing\n", made=now - day)
    assert "Suite: testing" in verifier.text(signed, of="it", scratch=tmp_path, tell=tell)
    for bad in (
        signed.replace(b"testing", b"testinG"),
        expired.clear_sign("Suite: testing\n", made=now - day),
        b"Suite: testing\n",
    ):
        with pytest.raises(FetchError, match="no good signature"):
            verifier.text(bad, of="it", scratch=tmp_path, tell=tell)
