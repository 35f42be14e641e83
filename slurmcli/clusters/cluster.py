"""`cluster [NAME]`: one page about a Slurm in pods. Exit code 3 while it waits for something."""

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
            help="Its SlurmCluster or Controller: NAME or NAMESPACE/NAME; without, the only one there is, or all in one line each.",
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
    """Show a Slurm in pods: its parts, its workers, its jobs, and what it waits for."""
    where, _, which = name.rpartition("/")
    where = where or namespace or way.namespace
    if name and everywhere:
        raise BadOperand("give either a name or --all-namespaces")
    found = access.run(
        way,
        lambda opened: _ask(opened, "" if everywhere else where, which, release_namespace),
    )
    if isinstance(found, SlurmPage):
        _show(found, form)
        sys.exit(0 if found.is_ready else WAITS)
    nothing = f"no Slurm in pods in {'any namespace' if everywhere else f'namespace {where}'}"
    output.table(found, _SUMMARY, form, nothing=nothing)


async def _ask(
    opened: Access, namespace: str, name: str, release: str
) -> SlurmPage | list[SlurmSummary]:
    found = await reading.objects(opened.kube, namespace)
    there = parts.controllers(found)
    if name and name not in [each.name for each in there]:
        others = ", ".join(each.name for each in there) or "none"
        raise BadOperand(f"namespace {namespace} has no Controller {name}; there are: {others}")
    if not name and (len(there) != 1 or not namespace):
        return page.summaries(found)
    slurm = await reading.slurm(opened, found, namespace, name or there[0].name)
    return page.page(slurm, await operator.in_words(opened.kube, release))


def _show(found: SlurmPage, form: Format) -> None:
    if form in (Format.JSON, Format.YAML):
        output.document(output.plain(found), form)
        return
    from rich.text import Text  # noqa: PLC0415  # JSON needs none

    screen, wide = output.console(), form is Format.WIDE
    state = "is ready" if found.is_ready else "is not ready"
    screen.print(Text.assemble((f"{found.namespace}/{found.name}", "bold"), f" {state}"))
    jobs = (
        "not known: give --slurm-url and a token"
        if found.running is None
        else f"{found.running} running, {found.pending} pending"
    )
    lines = [
        ("operator", found.operator),
        ("workers", workers.counted(found.workers) or "none"),
        ("jobs", jobs),
        *(("waits for", wait) for wait in found.waits),
    ]
    width = max(len(title) for title, _ in lines)
    for title, text in lines:
        if text:
            screen.print(Text.assemble("  ", (title.ljust(width), "dim"), "  ", text))
    for rows, columns in ((found.parts, _PARTS), (found.workers, _WORKERS)):
        if rows:
            screen.print()
            screen.print(output.drawn(rows, columns, wide=wide))
