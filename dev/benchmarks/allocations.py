"""`python -m benchmarks.allocations`: what the API server does for pods, ours and others, without the rest of `make bench`.

It compares allocations, which do not depend on how busy the machine is; a few minutes.
"""

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from benchmarks import apiserver, columns, report, scenarios
from benchmarks.meter import Meter
from benchmarks.results import Shape
from benchmarks.scenarios import Stage
from sandbox.client import Sandbox
from slurmruntime.kube.client import KubeClient

_REQUEST_TIMEOUT_S = 120.0
_NODES = 20


def main(
    *, column: Annotated[str, typer.Option(help="What is switched on.")] = columns.DEFAULTS
) -> None:
    """Measure on a sandbox of its own."""
    console = report.console()
    chosen = columns.column(column)
    shape = Shape(
        pods=scenarios.API_PODS,
        nodes=_NODES,
        waiting_s=0,
        is_profiled=False,
        column=chosen.name,
        values=chosen.values,
    )
    folder = Path(tempfile.mkdtemp(prefix="slurm-bridge-bench-"))
    folder.chmod(0o755)  # the servers' accounts must be able to enter
    try:
        with (
            Sandbox.up(folder, scenarios.options(shape)) as sandbox,
            asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
        ):
            lives, strangers = runner.run(_measured(sandbox, shape))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    console.print(report.api(lives, strangers))
    ours, plain = (lives[way].allocations for way in (apiserver.BRIDGED, apiserver.PLAIN))
    console.print(f"a pod of ours ÷ a plain one: {ours / plain:.2f}")


async def _measured(sandbox: Sandbox, shape: Shape) -> tuple[report.Lives, report.Strangers]:
    async with KubeClient.open(
        str(sandbox.kubeconfig), request_timeout_s=_REQUEST_TIMEOUT_S, user_agent="benchmarks"
    ) as kube:
        stage = Stage(
            sandbox=sandbox,
            meter=Meter(sandbox),
            kube=kube,
            shape=shape,
        )
        await scenarios.nodes_registered(stage)
        await scenarios.warm_up(stage)
        return await apiserver.lives(stage), await apiserver.strangers(stage)


if __name__ == "__main__":
    typer.run(main)
