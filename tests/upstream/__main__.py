"""`make test-e2e`: Kubernetes' own tests, plain and bridged at the same time; ends with 1 if bridged ones are worse."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from sandbox import assets
from sandbox.assets import Asset, AssetName
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names
from tests.servers import running_sandbox
from tests.upstream import ground, images, results
from tests.upstream.ledger import Ledger
from tests.upstream.results import Subject
from tests.upstream.selection import EXCUSED, LEFT_OUT, PATIENT, QUICK

OPTIONS = Options(nodes=0, plain_nodes=0, real_nodes=7, real_memory_mib=8192, dns=True)
BRIDGED = f"{names.ENABLED_LABEL}=true"
_PROGRAMS = (AssetName.E2E, AssetName.KUBE, AssetName.NODE)
_WORTH_S = 120.0
"""With less time left nothing is begun."""
_GRACE_S = 600.0
"""After their time is up, the tests still clean up."""


def main(
    *,
    page: Annotated[Path, typer.Option(help="The page to write.")],
    focus: Annotated[str, typer.Option(help="Only tests whose names match; no page.")] = "",
    minutes: Annotated[int, typer.Option(help="How long they may take.")] = 90,
    ledger: Annotated[
        Path | None,
        typer.Option(
            help="Go on where earlier runs with this file ended, of the same commit.",
            show_default="none",
        ),
    ] = None,
    reports: Annotated[
        Path | None, typer.Option(help="Keep logs and reports there.", show_default="nowhere")
    ] = None,
) -> None:
    """Run the tests of both groups in plain and in bridged namespaces, and compare."""
    with assets.shown(sys.stderr) as report:
        programs = assets.resolve_all(_PROGRAMS, report=report)
    with tempfile.TemporaryDirectory() as scratch, running_sandbox(OPTIONS) as sandbox:
        folder = (reports or Path(scratch)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        file = (ledger or folder / "outcomes.json").absolute()
        known = Ledger.read(file, f"{programs[AssetName.E2E].version} {_commit()}")
        _prepare(sandbox, programs, folder)
        end_s = time.monotonic() + minutes * 60.0
        for groups in (QUICK, PATIENT):
            left_s = end_s - time.monotonic()
            if left_s > _WORTH_S:
                e2e = programs[AssetName.E2E]
                found = _run(
                    sandbox,
                    e2e,
                    groups,
                    focus=focus,
                    settled=tuple(known.settled()),
                    limit_s=left_s,
                    folder=folder,
                )
                known = known.and_now(found[""], found[BRIDGED])
                known.write(file)
    outcome = results.compare(results.short(known.plain), results.short(known.bridged), EXCUSED)
    text = results.page(outcome, _subject(programs[AssetName.E2E].version))
    if reports is not None:
        (reports / "page.md").write_text(text)
    if not focus:
        page.write_text(text)
    typer.echo(results.summary(outcome))
    if outcome.worse:
        raise typer.Exit(1)


def _subject(version: str) -> Subject:
    return Subject(
        title="Kubernetes' own tests",
        introduction=(
            f"Written by `make test-e2e`: tests of Kubernetes {version} itself (`test/e2e`, `[sig-apps]` and `[sig-node]`), once in plain",
            "namespaces and once with every namespace they create labelled for slurm-bridge, on real kubelets ([development](development.md)).",
            "The pods are placed by kube-scheduler there and by Slurm here; the tests know nothing of it.",
        ),
        left_out=LEFT_OUT,
        images="The images that the tests name are made here, from the programs of Kubernetes' module and busybox.",
    )


def _prepare(sandbox: Sandbox, programs: Mapping[AssetName, Asset], folder: Path) -> None:
    """Give the nodes the images, and Kubernetes some of the nodes."""
    ground.keep_for_kubernetes(sandbox)
    e2e, kube, node_root = (programs[name] for name in _PROGRAMS)
    command = (e2e.bin / "e2e", "-images")
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    made = folder / "images"
    made.mkdir(exist_ok=True)
    for archive in images.build(sorted(listed), e2e, kube, node_root, made):
        sandbox.load_image(archive)


def _commit() -> str:
    command = ("/usr/bin/git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD")
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _run(
    sandbox: Sandbox,
    e2e: Asset,
    groups: Mapping[str, str],
    *,
    focus: str,
    settled: tuple[str, ...],
    limit_s: float,
    folder: Path,
) -> dict[str, dict[str, str]]:
    """Run every group plain and bridged, all at once; return the outcomes by namespaces' labels."""
    found: dict[str, dict[str, str]] = {"": {}, BRIDGED: {}}
    with contextlib.ExitStack() as ending:
        running = []
        for labels in found:
            for group, pattern in groups.items():
                out = folder / f"{group}-{'bridged' if labels else 'plain'}"
                out.mkdir(exist_ok=True)
                command = _command(
                    sandbox,
                    e2e,
                    focus=f"{pattern}.*{focus}",
                    settled=settled,
                    limit_s=limit_s,
                    out=out,
                )
                process = _started(command, labels, out)
                ending.callback(process.kill)
                running.append((labels, out, process))
        for labels, out, process in running:
            process.wait(limit_s + _GRACE_S)
            found[labels] |= results.read(out / "junit_01.xml")
    return found


def _started(command: tuple[str, ...], labels: str, out: Path) -> subprocess.Popen[bytes]:
    with (out / "log").open("w") as log:
        return subprocess.Popen(
            command,
            env={**os.environ, "E2E_NAMESPACE_LABELS": labels},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=out,
        )


def _command(
    sandbox: Sandbox, e2e: Asset, *, focus: str, settled: tuple[str, ...], limit_s: float, out: Path
) -> tuple[str, ...]:
    return (
        str(e2e.bin / "e2e"),
        f"--kubeconfig={sandbox.kubeconfig}",
        f"--kubectl-path={sandbox.instance.bin / 'kubectl'}",
        "--provider=skeleton",
        f"--num-nodes={len(ground.PLAIN)}",
        f"--non-blocking-taints=node-role.kubernetes.io/control-plane,{names.MANAGED_NODE_TAINT}",
        "--disable-log-dump",
        "--ginkgo.no-color",
        f"--ginkgo.timeout={limit_s:.0f}s",
        f"--ginkgo.focus={focus}",
        f"--ginkgo.skip={'|'.join((*LEFT_OUT, *settled))}",
        "--ginkgo.seed=1",  # both in one order: what time does not reach is the same in both
        f"--report-dir={out}",
    )


if __name__ == "__main__":
    typer.run(main)
