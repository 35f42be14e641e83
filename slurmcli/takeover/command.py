"""`take-over`: make pods and jobs of SchedMD's slurm-bridge ours, while they run.

The only command that writes. An administrator runs it once, after stopping the other bridge and
before installing ours; without `--yes` it only shows what it would do. Repeating it is harmless: it
finishes what was taken over by half. Exit code 2 if something is left.
"""

from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import typer

from bridge.domain.model import grant
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import Pod
from bridge.kube import decode, writes
from bridge.slurm import jobs, nodes
from slurmcli import access, output
from slurmcli.access import Access
from slurmcli.line.options import FormatOption, Way
from slurmcli.output import Format, TableColumn
from slurmcli.takeover import marked_jobs as marked
from slurmcli.takeover import patches as takeover_patches
from slurmcli.takeover import plan as takeover
from slurmcli.takeover.plan import CancelJob, Leave, RemoveFinalizer, Step, TakeOver
from slurmruntime.kube import lists, node_objects, objects
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import names
from slurmruntime.values.errors import PEER_ERRORS, CallError
from slurmruntime.values.ids import ClusterId, JobId

LEFT = 2
"""Exit code."""

_THEIR_IMAGES = ("slurm-bridge-scheduler", "slurm-bridge-controllers", "slurm-bridge-admission")
"""Names of the images of SchedMD's three programs, whatever the registry."""

COLUMNS = (
    TableColumn("OBJECT", "name"),
    TableColumn("JOB", "job"),
    TableColumn("WHAT", "what"),
    TableColumn("WHY", "why"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOverRow:
    """What becomes of one pod or node."""

    name: str
    job: str = ""
    what: str
    """`take over`, `cancel its job`, `let go`, `leave`, `mark as ours`; `failed` if it failed."""
    why: str = ""


def command(
    *,
    way: Way,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do it; otherwise only show what would be done.")
    ] = False,
    scheduler_name: Annotated[
        str, typer.Option(help="The scheduler of both bridges.", metavar="NAME")
    ] = names.SCHEDULER_NAME,
    cluster_id: Annotated[
        str,
        typer.Option(
            help="config.cluster_id of the chart, if it is set.",
            show_default="the uid of namespace kube-system",
            metavar="ID",
        ),
    ] = "",
    form: FormatOption = Format.TABLE,
) -> None:
    """Take over running pods and their jobs from SchedMD's slurm-bridge, after it was stopped."""
    rows = access.run(way, lambda opened: _Taker(opened, scheduler_name).run(cluster_id, yes=yes))
    output.table(rows, COLUMNS, form, nothing="no pods or nodes of SchedMD's slurm-bridge")
    if rows and not yes:
        output.say("nothing was changed: run it again with --yes")
    raise typer.Exit(LEFT if any(row.what in ("leave", "failed") for row in rows) else 0)


class _Taker:
    def __init__(self, opened: Access, scheduler_name: str) -> None:
        self._opened = opened
        self._scheduler_name = scheduler_name

    async def run(self, cluster_id: str, *, yes: bool) -> Sequence[TakeOverRow]:
        """Return what was done, or would be.

        Raises:
            PeerError: the other bridge still runs, or one of the systems does not answer.
        """
        kube, slurm = self._opened.kube, self._opened.slurm
        if slurm is None:
            raise _NotPossibleError("no access to Slurm: give --slurm-url and --slurm-token-file")
        if running := await self._still_running():
            raise _NotPossibleError(
                f"SchedMD's slurm-bridge is still running ({running}): stop it first, its controllers "
                "cancel every job whose mark they cannot read"
            )
        cluster = ClusterId(cluster_id or (await objects.get_namespace(kube, "kube-system")).uid)
        kube_nodes = await lists.listing(kube, node_objects.NODES)
        pods = await lists.listing(kube, decode.PODS)
        theirs = [pod for pod in pods if takeover.is_theirs(pod, self._scheduler_name)]
        named = {pod.job_id for pod in theirs if pod.job_id is not None}
        read = [await marked.read(slurm, job_id) for job_id in sorted(named)]
        steps = takeover.steps(
            theirs,
            {job.id: job for job in read if job is not None},
            kube_nodes=kube_nodes,
            cluster=cluster,
            scheduler_name=self._scheduler_name,
        )
        unmarked = takeover.unmarked_nodes(kube_nodes, await nodes.listing(slurm))
        rows: list[TakeOverRow] = []
        for node in unmarked:
            failure = await _attempt(self._mark(slurm, node, cluster)) if yes else ""
            rows.append(_row(node.name, "mark as ours", failure=failure))
        for step in steps:
            failure = await _attempt(self._do(slurm, step)) if yes else ""
            rows += _rows(step, failure)
        return rows

    async def _still_running(self) -> str:
        """Return the name of a running pod of SchedMD's programs, by its image; "" if there is none."""
        body = await self._opened.kube.request(
            "GET", "/api/v1/pods", params={"fieldSelector": "status.phase=Running"}
        )
        for pod in msgspec.json.decode(body)["items"]:
            if any(_is_theirs(container) for container in pod["spec"]["containers"]):
                return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        return ""

    async def _mark(self, slurm: SlurmClient, node: SlurmNodeFacts, cluster: ClusterId) -> None:
        ours = (names.BRIDGED_FEATURE, f"{names.CLUSTER_FEATURE}={cluster}")
        await nodes.set_features(slurm, node.name, [*dict.fromkeys((*node.features, *ours))])

    async def _do(self, slurm: SlurmClient, step: Step) -> None:
        match step:
            case TakeOver():
                await self._take(slurm, step)
            case CancelJob():
                await marked.cancel(slurm, step.job_id, comment=step.comment)
                for pod in step.pods:
                    await self._let_go(pod)
            case RemoveFinalizer():
                await self._let_go(step.pod)
            case Leave():
                pass

    async def _let_go(self, pod: Pod) -> None:
        if names.SCHEDMDS_FINALIZER in pod.finalizers:
            await writes.patch_pod(
                self._opened.kube, pod, takeover_patches.remove_their_finalizer(pod)
            )

    async def _take(self, slurm: SlurmClient, step: TakeOver) -> None:
        """Write the job first: a pod of ours whose job is not ours would count as lost."""
        await marked.take_over(slurm, step.job_id, comment=step.comment, identity=step.identity)
        job = await jobs.job(slurm, step.job_id)
        if not isinstance(job, SlurmJob) or job.grant is None:
            raise _NotPossibleError(f"job {step.job_id} is no longer running")
        granted = grant.encode(job.identity, job.grant)
        for pod, place in zip(step.pods, step.places, strict=True):
            if pod.kube_node is not None:
                patch = takeover_patches.placed(
                    pod, kube_node=pod.kube_node, sluid=job.sluid, grant=granted, place=place
                )
                await writes.patch_pod(self._opened.kube, pod, patch)


class _NotPossibleError(CallError):
    """Taking over is not possible now."""


async def _attempt(action: Awaitable[None]) -> str:
    """Return what failed, or "": one failure must not stop the rest."""
    try:
        await action
    except PEER_ERRORS as error:
        return str(error)
    return ""


def _is_theirs(container: Any) -> bool:
    image = container["image"].rpartition("/")[2]
    return image.partition("@")[0].partition(":")[0] in _THEIR_IMAGES


def _rows(step: Step, failure: str) -> Iterator[TakeOverRow]:
    match step:
        case TakeOver():
            for pod in step.pods:
                yield _row(pod.full_name, "take over", job=step.job_id, failure=failure)
        case CancelJob():
            for pod in step.pods:
                why = "" if pod.is_bound else "pending: delete it, its controller will recreate it"
                yield _row(
                    pod.full_name, "cancel its job", job=step.job_id, why=why, failure=failure
                )
        case RemoveFinalizer():
            yield _row(
                step.pod.full_name, "let go", job=step.pod.job_id, why=step.why, failure=failure
            )
        case Leave():
            yield _row(step.pod.full_name, "leave", job=step.pod.job_id, why=step.why)


def _row(
    name: str, what: str, *, job: JobId | None = None, why: str = "", failure: str = ""
) -> TakeOverRow:
    return TakeOverRow(
        name=name,
        job="" if job is None else str(job),
        what="failed" if failure else what,
        why=failure or why,
    )
