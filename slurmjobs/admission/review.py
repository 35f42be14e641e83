"""Review a SlurmJob at CREATE: record its author, and refuse it if it cannot become a job.

Both functions are pure, and `mutate` is idempotent, because the API server may call it again after other webhooks.
A script from a ConfigMap is read only when the job is submitted: the webhook asks no other server.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Final

from bridge.domain.admission import authorship
from bridge.domain.admission.authorship import Authorship
from bridge.domain.admission.review import Verdict
from bridge.domain.request.rules import SLURM_JOB, Policy, Requester
from slurmjobs.companions import collecting, volume
from slurmjobs.identity import asking
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.request import build
from slurmjobs.request.origin import ScriptOrigin
from slurmjobs.script import read
from slurmjobs.script.option_values import OptionValues
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.values import names
from slurmruntime.values.faults import MOST_FAULTS, Fault, bounded

_ANY_DIRECTORY = "/"
"""The policy rule decides on the directory later; no fault depends on it."""


def mutate(metadata: ObjectMetadata, requester: Requester, policy: Policy) -> Verdict:
    """Record who creates the object, overwriting whatever the author has put there.

    The API server has not validated the object against its schema yet, and reports those faults itself.
    """
    return Verdict(patch=tuple(authorship.record(_authorship(metadata, requester), policy)))


def validate(job: SlurmJobObject, requester: Requester, policy: Policy, now: datetime) -> Verdict:
    """Return everything that is wrong with the object after every mutation.

    now: in the time zone of times in scripts.
    """
    misattributed = tuple(authorship.author_faults(_authorship(job.metadata, requester)))
    if not job.is_ours:
        return Verdict(faults=bounded(misattributed))
    spec = job.spec
    script = spec.script if spec.script is not None else _UNKNOWN_SCRIPT
    origin = ScriptOrigin(
        directory=_ANY_DIRECTORY,
        now=now,
        environment={variable.name: variable.value for variable in spec.env},
    )
    content = read.script(script, spec.options)
    result = build.assemble(script, content, name=job.metadata.name, origin=origin)
    return Verdict(
        faults=bounded(
            (
                *misattributed,
                *_preset_annotations(job.metadata),
                *_dependency_faults(job),
                *_result_faults(job),
                *in_object(result.faults),
                *in_object(_not_permitted(job, result.options, requester, policy)),
            )
        ),
        warnings=tuple(fault.text for fault in islice(in_object(result.warnings), MOST_FAULTS)),
    )


_UNKNOWN_SCRIPT = "#!/bin/sh\n"
"""Stands in for a script in a ConfigMap: only the object's own options are checked."""


def _authorship(metadata: ObjectMetadata, requester: Requester) -> Authorship:
    return Authorship(
        kind=SLURM_JOB,
        namespace=metadata.namespace,
        requester=requester,
        annotations=metadata.annotations,
        controller_uid=metadata.controller_uid,
    )


def _preset_annotations(metadata: ObjectMetadata) -> Iterator[Fault]:
    if names.WHEN_LOST_ANNOTATION in metadata.annotations:
        yield Fault(
            f"metadata.annotations[{names.WHEN_LOST_ANNOTATION}]",
            "leave it out: it is for administrators, once Slurm has lost the job",
        )


def _dependency_faults(job: SlurmJobObject) -> Iterator[Fault]:
    for index, dependency in enumerate(job.spec.depends_on):
        if dependency.slurm_job is not None and dependency.slurm_job == job.metadata.name:
            yield Fault(f"spec.dependsOn[{index}].slurmJob", "a SlurmJob cannot wait for itself")


def _result_faults(job: SlurmJobObject) -> Iterator[Fault]:
    spec, most = job.spec, collecting.LONGEST_NAME
    if not spec.results:
        return
    if spec.output is None:
        yield Fault("spec.results", "results need output: they are read from its claim")
    if len(job.metadata.name) > most:
        text = f"expected at most {most} characters with results: their pods are named after the SlurmJob"
        yield Fault("metadata.name", text)
    for index, result in enumerate(spec.results):
        at = f"spec.results[{index}]"
        for field_path, text in ((f"{at}.from", result.source), (f"{at}.to.path", result.to.path)):
            if ".." in text.split("/"):
                yield Fault(field_path, "a path may not contain `..`")
        if spec.output is not None and result.source.startswith("/"):
            below = spec.output.cluster_path
            if volume.within(result.source, below) is None:
                yield Fault(
                    f"{at}.from", f"{result.source} is not below {below} (output.clusterPath)"
                )


def _not_permitted(
    job: SlurmJobObject, options: OptionValues, requester: Requester, policy: Policy
) -> Iterator[Fault]:
    yield from asking.never_allowed(options)
    author = _authorship(job.metadata, requester)
    yield from authorship.not_permitted(author, asking.ask(options), policy)


_LINE: Final = re.compile(r"line [0-9]+")
_FIELDS: Final = "fields."
_PATHS: Final = {"script": "spec.script", "options": "spec.options"}


def in_object(faults: Iterable[Fault]) -> Iterator[Fault]:
    """Return the faults with paths in the object: `spec.script`, its line, `spec.options.time`."""
    for fault in faults:
        if _LINE.fullmatch(fault.path):
            yield Fault("spec.script", fault.text)
        elif fault.path.startswith(_FIELDS):
            yield Fault(f"spec.options.{fault.path.removeprefix(_FIELDS)}", fault.message)
        else:
            yield Fault(_PATHS.get(fault.path, fault.path), fault.message)
