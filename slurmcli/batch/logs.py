"""`kubectl slurm logs`: print a SlurmJob's output, or say where it lies and why it cannot be read from here."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from bridge.kube import decode
from slurmcli.access import Access, run
from slurmcli.batch.finding import job_named
from slurmcli.line.options import Namespace, Way
from slurmruntime.kube.errors import NotFound
from slurmruntime.values import names

if TYPE_CHECKING:
    from slurmjobs.objects.slurmjob import SlurmJobObject

_ABSENT = 1


@dataclass(frozen=True, slots=True)
class _Found:
    companion: str
    """The name of the pod that prints the output; "" if there is none."""
    why: str = ""


def command(
    job: Annotated[str, typer.Argument(help="Name of the SlurmJob.", metavar="JOB")],
    *,
    way: Way,
    namespace: Namespace = "",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")
    ] = False,
) -> None:
    """Print what a SlurmJob has written, errors too."""
    where = namespace or way.namespace
    found = run(way, lambda access: _find(access, where, job))
    if not found.companion:
        typer.echo(found.why, err=True)
        raise typer.Exit(_ABSENT)
    command = ["kubectl", f"--kubeconfig={way.kubeconfig_file}", f"--namespace={where}", "logs"]
    command += ["--follow"] if follow else []
    os.execvp(command[0], [*command, "--all-containers", found.companion])  # noqa: S606  # kubectl has started us


async def _find(access: Access, namespace: str, name: str) -> _Found:
    from slurmjobs.companions import pod  # noqa: PLC0415  # 60 ms that other commands do not need

    try:
        job = await job_named(access.kube, namespace, name)
    except NotFound:
        return _Found("", f"there is no SlurmJob {name} in namespace {namespace}")
    companion = pod.name_of(job)
    try:
        found = await decode.get_pod(access.kube, namespace, companion)
    except NotFound:
        return _Found("", why_not(job))
    if names.COMPANION_LABEL not in found.labels:
        return _Found("", f"pod {companion} is not slurm-bridge's: it has taken the name")
    return _Found(companion)


def why_not(job: "SlurmJobObject") -> str:
    """Say why no pod prints the job's output, where it lies, and what helps."""
    from slurmjobs.companions import due  # noqa: PLC0415  # as above
    from slurmjobs.lifecycle import outcome  # noqa: PLC0415  # likewise
    from slurmjobs.objects import slurmjob  # noqa: PLC0415  # likewise

    said = job.status.outputs
    files = " and ".join(dict.fromkeys(filter(None, (said.stdout, said.stderr)))) if said else ""
    lies = f"its output lies in {files} on the cluster" if files else "it has no output so far"
    if job.status.phase in (None, "Pending"):
        return (
            f"{job.full_name} waits ({job.status.reason or 'not looked at yet'}): no output so far"
        )
    if job.status.reason == outcome.NEVER_RUNNABLE:
        return f"{job.full_name} has never run, so it wrote nothing: {job.status.message}"
    if job.resource is not slurmjob.OURS:
        of = f"{job.resource.kind} of {job.resource.api_version}"
        help_ = f"{of} has no field for the claim that holds this folder; our SlurmJobs have"
    elif job.spec.output is None:
        help_ = "name the claim that holds this folder in spec.output, and kubectl logs works"
    elif job.status.array is not None:
        help_ = "each task of an array has a file of its own, and none is printed here"
    elif not due.files(job):
        help_ = f"that is not below spec.output.clusterPath, {job.spec.output.cluster_path}"
    else:
        help_ = (
            "no pod prints it: it was deleted, could not be created, or the job ended too long ago"
        )
    return f"{lies}; {help_}"
