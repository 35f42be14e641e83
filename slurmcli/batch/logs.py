"""`kubectl slurm logs`: print a SlurmJob's output, or say where it is and why it cannot be read from here."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from bridge.kube import decode
from slurmcli import output
from slurmcli.access import Access, run
from slurmcli.batch.finding import job_named
from slurmcli.line.options import Namespace, Way
from slurmruntime.kube.errors import NotFound
from slurmruntime.values import names

if TYPE_CHECKING:
    from slurmjobs.objects.slurmjob import SlurmJobObject

_ABSENT = 1


def command(
    job: Annotated[str, typer.Argument(help="Name of the SlurmJob.", metavar="JOB")],
    *,
    way: Way,
    namespace: Namespace = "",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Follow the output until the job ends.")
    ] = False,
) -> None:
    """Print the output of a SlurmJob, standard error included."""
    where = namespace or way.namespace
    pod, why = run(way, lambda access: _find(access, where, job))
    if not pod:
        output.say(why)
        raise typer.Exit(_ABSENT)
    command = ["kubectl", f"--kubeconfig={way.kubeconfig_file}", f"--namespace={where}", "logs"]
    command += ["--follow"] if follow else []
    os.execvp(command[0], [*command, "--all-containers", pod])  # noqa: S606  # kubectl has started us


async def _find(access: Access, namespace: str, name: str) -> tuple[str, str]:
    """Return the name of the pod that prints the output; if there is none, "" and why."""
    from slurmjobs.companions import pod  # noqa: PLC0415  # 60 ms that other commands do not need

    try:
        job = await job_named(access.kube, namespace, name)
    except NotFound:
        return "", f"there is no SlurmJob {name} in namespace {namespace}"
    companion = pod.name_of(job)
    try:
        companion_pod = await decode.get_pod(access.kube, namespace, companion)
    except NotFound:
        return "", why_not(job)
    if names.COMPANION_LABEL not in companion_pod.labels:
        return "", f"pod {companion} has the expected name but is not slurm-bridge's"
    return companion, ""


def why_not(job: "SlurmJobObject") -> str:
    """Say why no pod prints the job's output, where the output is, and what to do."""
    from slurmjobs.companions import due  # noqa: PLC0415  # as above
    from slurmjobs.lifecycle import outcome  # noqa: PLC0415  # likewise
    from slurmjobs.objects import slurmjob  # noqa: PLC0415  # likewise

    outputs = job.status.outputs
    files = (
        " and ".join(dict.fromkeys(filter(None, (outputs.stdout, outputs.stderr))))
        if outputs
        else ""
    )
    place = f"its output is in {files} on the cluster" if files else "it has no output yet"
    if job.status.phase in (None, "Pending"):
        return f"{job.full_name} is pending ({job.status.reason or 'not processed yet'}): no output yet"
    if job.status.reason == outcome.NEVER_RUNNABLE:
        return f"{job.full_name} never ran and has no output: {job.status.message}"
    if job.resource is not slurmjob.OURS:
        of = f"{job.resource.kind} of {job.resource.api_version}"
        help_ = f"{of} has no field for the PVC that holds this folder; slurm-bridge's SlurmJob has"
    elif job.spec.output is None:
        help_ = "to read it with kubectl, name the PVC that holds this folder in spec.output"
    elif job.status.array is not None:
        help_ = "each task of an array writes its own file; they cannot be printed here"
    elif not due.files(job):
        help_ = f"that is not below spec.output.clusterPath ({job.spec.output.cluster_path})"
    else:
        help_ = "no pod prints it: the pod was deleted, could not be created, or the job ended too long ago"
    return f"{place}; {help_}"
