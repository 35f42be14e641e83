"""`why NAME`, for a pod, a SlurmJob or an object of a Slurm in pods: what it waits for, who is ahead, what to do.

Exit code 3 while it waits, for scripts.
"""

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated

from bridge.domain.diagnosis import why
from bridge.domain.diagnosis.why import Diagnosis, Situation, Stage
from bridge.domain.model.claims.values import ResourceClaim
from bridge.kube import decode
from slurmcli import access, installation, output
from slurmcli.access import Access
from slurmcli.batch.finding import job_named
from slurmcli.line.declaring import Operand
from slurmcli.line.options import FormatOption, Namespace, ReleaseNamespace, Way
from slurmcli.output import Format
from slurmruntime.kube import objects
from slurmruntime.kube.errors import Forbidden, KubeError, NotFound
from slurmruntime.values import names

WAITS = 3
"""Exit code."""
_JOB_KINDS = ("sj", "slurmjob", "slurmjobs")
_POD_KINDS = ("po", "pod", "pods")
CLUSTER_KINDS = {
    "slurmcluster": "slurmCluster",
    "slurmclusters": "slurmCluster",
    "sc": "slurmCluster",
    "controller": "controller",
    "controllers": "controller",
    "nodeset": "nodeSet",
    "nodesets": "nodeSet",
    "nss": "nodeSet",
    "loginset": "loginSet",
    "loginsets": "loginSet",
    "lss": "loginSet",
    "restapi": "restApi",
    "restapis": "restApi",
    "accounting": "accounting",
    "accountings": "accounting",
}
"""Kinds of a Slurm in pods, with their names in JSON. Other short names of theirs, such as slurmd, may well be namespaces."""
_WORKERS_OWNER = ("slinky.slurm.net/v1beta1", "NodeSet")


def command(
    pod: Annotated[
        str,
        Operand(
            help="Pod or SlurmJob: NAME, NAMESPACE/NAME, or sj/NAME if a pod has the same name; "
            "for a Slurm in pods nodeset/NAME, slurmcluster/NAME and so on.",
            metavar="NAME",
        ),
    ],
    *,
    way: Way,
    namespace: Namespace = "",
    release_namespace: ReleaseNamespace = names.RELEASE_NAMESPACE,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show why a pod, a SlurmJob or an object of a Slurm in pods waits, who is ahead of it and what to do."""
    where, _, name = pod.rpartition("/")
    kind = where if where in (*_JOB_KINDS, *_POD_KINDS, *CLUSTER_KINDS) else ""
    where = ("" if kind else where) or namespace or way.namespace

    async def ask(opened: Access) -> tuple[str, Diagnosis]:
        if kind in _JOB_KINDS:
            return "slurmJob", await _ask_of_job(opened, where, name)
        if kind in CLUSTER_KINDS:
            from slurmcli.clusters import reading  # noqa: PLC0415  # pods do not need it

            return CLUSTER_KINDS[kind], await reading.of_object(opened, kind, where, name)
        try:
            return "pod", await _ask(opened, where, name, release_namespace)
        except (NotFound, Forbidden) as error:
            if not kind and (answer := await _perhaps_of_job(opened, where, name)):
                return "slurmJob", answer
            raise error from None

    what, diagnosis = access.run(way, ask)
    if form in (Format.JSON, Format.YAML):
        output.document({what: f"{where}/{name}", **output.plain(diagnosis)}, form)
    else:
        _print(f"{where}/{name}", diagnosis)
    sys.exit(WAITS if diagnosis.stage is Stage.WAITS else 0)


async def _perhaps_of_job(opened: Access, namespace: str, name: str) -> Diagnosis | None:
    try:
        return await _ask_of_job(opened, namespace, name)
    except KubeError:
        return None  # there may be no SlurmJobs at all: the user meant the pod


async def _ask_of_job(opened: Access, namespace: str, name: str) -> Diagnosis:
    from slurmjobs.lifecycle import why as of_job  # noqa: PLC0415  # 60 ms that pods do not need

    job = await job_named(opened.kube, namespace, name)
    now = datetime.now(UTC)  # noqa: TID251  # a person runs a command now
    return of_job.answer(job, now=now, queue=await opened.queue())


async def _ask(opened: Access, namespace: str, name: str, release: str) -> Diagnosis:
    pod = await decode.get_pod(opened.kube, namespace, name)
    if pod.owner and (pod.owner.api_version, pod.owner.kind) == _WORKERS_OWNER:
        from slurmcli.clusters import reading  # noqa: PLC0415  # other pods do not need it

        return await reading.of_worker(opened, namespace, name)
    claims: Mapping[str, ResourceClaim | None] = {}
    if pod.resource_claims:
        from bridge.kube.claims import claimed  # noqa: PLC0415  # 15 ms that few pods need

        claims = await claimed.of_pod(opened.kube, pod)
    try:
        labels = (await objects.get_namespace(opened.kube, namespace)).labels
    except (
        Forbidden
    ):  # ordinary users may not read namespaces, and it matters only for other schedulers' pods
        labels = {}
    return why.answer(
        Situation(
            pod=pod,
            now=datetime.now(UTC),  # noqa: TID251  # a person runs a command now
            namespace_is_selected=labels.get(names.ENABLED_LABEL) == "true",
            release=release,
            namespace_is_excluded=namespace
            in await installation.excluded_namespaces(opened.kube, release),
            queue=await opened.queue(),
            scheduler_name=await installation.scheduler_name(opened.kube, release)
            or names.SCHEDULER_NAME,
            claims=claims,
        )
    )


def _print(pod: str, diagnosis: Diagnosis) -> None:
    output.line((pod, "bold"), f" {diagnosis.state}")
    output.titled([("why", diagnosis.why), ("what to do", diagnosis.next_step), *diagnosis.details])
