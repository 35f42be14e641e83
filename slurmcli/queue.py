"""`queue`: workloads and placeholders side by side, as both systems see them."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from bridge.domain.diagnosis import queue
from bridge.domain.diagnosis.queue import QueueEntry
from bridge.domain.model.pods import Pod
from bridge.kube import decode
from slurmcli import access, installation, output
from slurmcli.access import Access
from slurmcli.line.declaring import Option
from slurmcli.line.options import FormatOption, Namespace, ReleaseNamespace, Way
from slurmcli.output import Format, TableColumn
from slurmruntime.kube import lists
from slurmruntime.values import names

COLUMNS = (
    TableColumn("NAMESPACE", "namespace"),
    TableColumn("WORKLOAD", "workload"),
    TableColumn("PODS", "pods"),
    TableColumn("RUN", "running"),
    TableColumn("JOB", "job"),
    TableColumn("STATE", "state"),
    TableColumn("USER", "user"),
    TableColumn("ACCOUNT", "account", wide=True),
    TableColumn("PARTITION", "partition", wide=True),
    TableColumn("PRIORITY", "priority", wide=True),
    TableColumn("GPUS", "gpus"),
    TableColumn("AGE", "age"),
    TableColumn("START", "start", wide=True),
    TableColumn("NODES", "nodes"),
    TableColumn("REASON", "reason"),
)

_PACE_S = 2.0


def command(
    *,
    way: Way,
    namespace: Namespace = "",
    everywhere: Annotated[
        bool, Option(("--all-namespaces", "-A"), help="Show all namespaces.")
    ] = False,
    watch: Annotated[bool, Option(("--watch", "-w"), help="Refresh until Ctrl-C.")] = False,
    release_namespace: ReleaseNamespace = names.RELEASE_NAMESPACE,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show workloads and their placeholders: pending ones first, in Slurm's order."""
    where = "" if everywhere else namespace or way.namespace

    def entries() -> Sequence[QueueEntry]:
        return access.run(way, lambda opened: _ask(opened, where, release_namespace))

    if not watch:
        nothing = (
            f"no pods scheduled by Slurm in {f'namespace {where}' if where else 'any namespace'}"
        )
        output.table(entries(), COLUMNS, form, nothing=nothing)
        return
    from rich.live import Live  # noqa: PLC0415  # only this needs it

    with Live(console=output.console(), auto_refresh=False) as live:
        while True:
            live.update(output.draw(entries(), COLUMNS, wide=form is Format.WIDE), refresh=True)
            time.sleep(_PACE_S)


async def _ask(opened: Access, namespace: str, release: str) -> Sequence[QueueEntry]:
    # Ordinary users may not read the settings: then the gate and the finalizer identify our pods.
    name = await installation.scheduler_name(opened.kube, release)
    selectors = (
        [f"spec.schedulerName={scheduler}" for scheduler in names.schedulers(name)]
        if name
        else [""]
    )
    pods: list[Pod] = []
    for selector in selectors:
        ours = {"fieldSelector": selector} if selector else {}
        candidates = await lists.listing(opened.kube, decode.PODS, namespace=namespace, params=ours)
        pods += [pod for pod in candidates if pod.is_ours(name or names.SCHEDULER_NAME)]
    jobs = await opened.queue()
    if jobs is not None and namespace:
        jobs = tuple(job for job in jobs if job.identity and job.identity.namespace == namespace)
    return queue.entries(pods, jobs, datetime.now(UTC))  # noqa: TID251  # a person runs a command now
