"""`queue`: workloads and placeholders side by side, as both systems see them."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.live import Live

from bridge.commands import access, output
from bridge.commands.access import Access, Kubeconfig, Namespace, SlurmTokenFile, SlurmUrl, Way
from bridge.commands.output import Column, Format, FormatOption
from bridge.domain import names
from bridge.domain.diagnosis import queue
from bridge.domain.diagnosis.queue import Entry
from bridge.kube import decode, lists

COLUMNS = (
    Column("NAMESPACE", "namespace"),
    Column("WORKLOAD", "workload"),
    Column("PODS", "pods"),
    Column("RUN", "running"),
    Column("JOB", "job"),
    Column("STATE", "state"),
    Column("USER", "user"),
    Column("ACCOUNT", "account", wide=True),
    Column("PARTITION", "partition", wide=True),
    Column("PRIORITY", "priority", wide=True),
    Column("GPUS", "gpus"),
    Column("AGE", "age"),
    Column("START", "start", wide=True),
    Column("NODES", "nodes"),
    Column("REASON", "reason"),
)

_PACE_S = 2.0


def command(
    *,
    namespace: Namespace = "",
    everywhere: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Of every namespace.")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Until Ctrl-C.")] = False,
    form: FormatOption = Format.TABLE,
    kubeconfig: Kubeconfig = "",
    slurm_url: SlurmUrl = "",
    slurm_token_file: SlurmTokenFile = "",
) -> None:
    """Show workloads and their placeholders: what waits first, in Slurm's order."""
    way = Way(kubeconfig=kubeconfig, slurm_url=slurm_url, slurm_token_file=slurm_token_file)
    where = "" if everywhere else namespace or way.namespace

    def look() -> Sequence[Entry]:
        return access.run(way, lambda opened: _ask(opened, where))

    if not watch:
        nothing = f"no pods of ours in {f'namespace {where}' if where else 'any namespace'}"
        output.table(look(), COLUMNS, form, nothing=nothing)
        return
    with Live(console=output.console(), auto_refresh=False) as live:
        while True:
            live.update(output.drawn(look(), COLUMNS, wide=form is Format.WIDE), refresh=True)
            time.sleep(_PACE_S)


async def _ask(opened: Access, namespace: str) -> Sequence[Entry]:
    ours = {"fieldSelector": f"spec.schedulerName={names.SCHEDULER_NAME}"}
    pods = await lists.listing(opened.kube, decode.PODS, namespace=namespace, params=ours)
    jobs = await opened.queue()
    if jobs is not None and namespace:
        jobs = tuple(job for job in jobs if job.identity and job.identity.namespace == namespace)
    return queue.entries(pods, jobs, datetime.now(UTC))  # noqa: TID251  # a command looks now
