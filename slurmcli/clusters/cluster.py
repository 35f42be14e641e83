"""`cluster [NAME]`: one page about a Slurm in pods. Exit code 3 while it is not ready."""

import sys
from typing import Annotated

from slurmcli import access, output
from slurmcli.access import Access
from slurmcli.clusters import operator, reading
from slurmcli.line.declaring import BadOperand, Operand, Option
from slurmcli.line.options import FormatOption, Namespace, ReleaseNamespace, Way
from slurmcli.output import Format, TableColumn
from slurmoperator.diagnosis import page, parts, workers
from slurmoperator.diagnosis.page import SlurmPage, SlurmSummary
from slurmruntime.values import names

WAITS = 3
"""Exit code."""

_SUMMARY = (
    TableColumn("NAMESPACE", "namespace"),
    TableColumn("NAME", "name"),
    TableColumn("STATE", "state"),
    TableColumn("WORKERS", "workers"),
    TableColumn("READY", "ready"),
    TableColumn("IDLE", "idle"),
    TableColumn("ALLOCATED", "allocated"),
    TableColumn("DRAINED", "drained"),
    TableColumn("DOWN", "down"),
    TableColumn("WHY", "why"),
)
_PARTS = (
    TableColumn("PART", "part"),
    TableColumn("PODS", "pods"),
    TableColumn("VERSION", "version"),
    TableColumn("STATE", "state"),
    TableColumn("WHY", "why"),
)
_WORKERS = (
    TableColumn("WORKER", "worker"),
    TableColumn("NODESET", "node_set"),
    TableColumn("NODE", "kube_node"),
    TableColumn("POD", "pod"),
    TableColumn("SLURM", "state"),
    TableColumn("JOBS", "jobs"),
    TableColumn("WHY", "why"),
)


def command(
    name: Annotated[
        str,
        Operand(
            help="SlurmCluster or Controller: NAME or NAMESPACE/NAME. Without it, the only one, or a line for each.",
            metavar="NAME",
        ),
    ] = "",
    *,
    way: Way,
    namespace: Namespace = "",
    everywhere: Annotated[
        bool, Option(("--all-namespaces", "-A"), help="Show all namespaces.")
    ] = False,
    release_namespace: ReleaseNamespace = names.RELEASE_NAMESPACE,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show a Slurm in pods: its daemons, its workers, its jobs, and what it waits for."""
    where, _, which = name.rpartition("/")
    where = where or namespace or way.namespace
    if name and everywhere:
        raise BadOperand("give either a name or --all-namespaces")
    answer = access.run(
        way, lambda opened: _ask(opened, "" if everywhere else where, which, release_namespace)
    )
    if isinstance(answer, SlurmPage):
        _show(answer, form)
        sys.exit(0 if answer.is_ready else WAITS)
    nothing = f"no Slurm in pods in {'any namespace' if everywhere else f'namespace {where}'}"
    output.table(answer, _SUMMARY, form, nothing=nothing)


async def _ask(
    opened: Access, namespace: str, name: str, release: str
) -> SlurmPage | list[SlurmSummary]:
    objects = await reading.objects(opened.kube, namespace)
    controllers = parts.controllers(objects)
    if name and name not in [controller.name for controller in controllers]:
        others = ", ".join(controller.name for controller in controllers) or "none"
        raise BadOperand(f"namespace {namespace} has no Controller {name}; it has: {others}")
    if not name and (len(controllers) != 1 or not namespace):
        return page.summaries(objects)
    slurm = await reading.slurm(opened, objects, namespace, name or controllers[0].name)
    return page.page(slurm, await operator.summarize(opened.kube, release))


def _show(slurm_page: SlurmPage, form: Format) -> None:
    if form in (Format.JSON, Format.YAML):
        output.document(output.plain(slurm_page), form)
        return
    state = "is ready" if slurm_page.is_ready else "is not ready"
    output.line((f"{slurm_page.namespace}/{slurm_page.name}", "bold"), f" {state}")
    jobs = (
        "unknown: give --slurm-url and a token"
        if slurm_page.running is None
        else f"{slurm_page.running} running, {slurm_page.pending} pending"
    )
    lines = [
        ("operator", slurm_page.operator),
        ("workers", workers.count_states(slurm_page.workers) or "none"),
        ("jobs", jobs),
        *(("waits for", wait) for wait in slurm_page.waits),
    ]
    output.titled(lines)
    for rows, columns in ((slurm_page.parts, _PARTS), (slurm_page.workers, _WORKERS)):
        if rows:
            output.line()
            output.table(rows, columns, form, nothing="")
