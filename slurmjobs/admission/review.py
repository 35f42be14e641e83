"""Review a SlurmJob at CREATE: what is written on it, and why it is refused.

Both functions are pure, and `mutate` is idempotent, because the API server may call it again after other webhooks.
What a script from a ConfigMap says is found out when it is submitted: the webhook asks no other server.
"""

from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from bridge.domain.admission import authorship
from bridge.domain.admission.authorship import Authorship
from bridge.domain.admission.review import Verdict
from bridge.domain.request.rules import SLURM_JOB, Policy, Requester
from slurmjobs.admission.paths import in_object
from slurmjobs.companions import collecting, volume
from slurmjobs.identity import asking
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmjobs.request import build
from slurmjobs.request.origin import ScriptOrigin
from slurmjobs.script import read
from slurmjobs.script.chosen import ChosenOptions
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.values import names
from slurmruntime.values.faults import MOST_FAULTS, Fault, bounded

_ANY_DIRECTORY = "/"
"""Which one it will be depends on the rule, and no fault depends on which one it is."""


def mutate(metadata: ObjectMetadata, requester: Requester, policy: Policy) -> Verdict:
    """Record who creates the object, over whatever the author has written there.

    The API server has not compared the object with its definition yet, and will say by itself what is wrong with it.
    """
    return Verdict(patch=tuple(authorship.recorded(_authorship(metadata, requester), policy)))


def validate(job: SlurmJobObject, requester: Requester, policy: Policy, now: datetime) -> Verdict:
    """Return everything that is wrong with the object as it is after every mutation.

    Args:
        job: The object.
        requester: Who creates it.
        policy: The rules.
        now: With the zone that times in scripts are meant in.
    """
    misattributed = tuple(authorship.misattributed(_authorship(job.metadata, requester)))
    if not job.is_ours:
        return Verdict(faults=bounded(misattributed))
    spec = job.spec
    script = spec.script if spec.script is not None else _UNKNOWN_SCRIPT
    origin = ScriptOrigin(
        directory=_ANY_DIRECTORY,
        now=now,
        environment={each.name: each.value for each in spec.env},
    )
    found = read.script(script, spec.options)
    built = build.assemble(script, found, name=job.metadata.name, origin=origin)
    return Verdict(
        faults=bounded(
            (
                *misattributed,
                *_preset(job.metadata),
                *_of_dependencies(job),
                *_of_results(job),
                *in_object(built.faults),
                *in_object(_not_permitted(job, built.options, requester, policy)),
            )
        ),
        warnings=tuple(fault.text for fault in islice(in_object(built.warnings), MOST_FAULTS)),
    )


_UNKNOWN_SCRIPT = "#!/bin/sh\n"
"""In the place of one that stands elsewhere: its options are those of the object alone."""


def _authorship(metadata: ObjectMetadata, requester: Requester) -> Authorship:
    return Authorship(
        kind=SLURM_JOB,
        namespace=metadata.namespace,
        requester=requester,
        annotations=metadata.annotations,
        controller_uid=metadata.controller_uid,
    )


def _preset(metadata: ObjectMetadata) -> Iterator[Fault]:
    if names.WHEN_LOST_ANNOTATION in metadata.annotations:
        yield Fault(
            f"metadata.annotations[{names.WHEN_LOST_ANNOTATION}]",
            "leave it out: it is an administrator's answer once Slurm has lost the job",
        )


def _of_dependencies(job: SlurmJobObject) -> Iterator[Fault]:
    for index, each in enumerate(job.spec.depends_on):
        if each.slurm_job is not None and each.slurm_job == job.metadata.name:
            yield Fault(f"spec.dependsOn[{index}].slurmJob", "a SlurmJob cannot wait for itself")


def _of_results(job: SlurmJobObject) -> Iterator[Fault]:
    spec, most = job.spec, collecting.LONGEST_NAME
    if not spec.results:
        return
    if spec.output is None:
        yield Fault("spec.results", "results need output: its claim is what they are read from")
    if len(job.metadata.name) > most:
        text = f"expected at most {most} characters where there are results, whose pods are named after it"
        yield Fault("metadata.name", text)
    for index, each in enumerate(spec.results):
        at = f"spec.results[{index}]"
        for path, text in ((f"{at}.from", each.source), (f"{at}.to.path", each.to.path)):
            if ".." in text.split("/"):
                yield Fault(path, "it has a part `..`, which may lead anywhere")
        if spec.output is not None and each.source.startswith("/"):
            below = spec.output.cluster_path
            if volume.within(each.source, below) is None:
                yield Fault(
                    f"{at}.from", f"{each.source} does not lie below {below} (output.clusterPath)"
                )


def _not_permitted(
    job: SlurmJobObject, options: ChosenOptions, requester: Requester, policy: Policy
) -> Iterator[Fault]:
    yield from asking.never_allowed(options)
    author = _authorship(job.metadata, requester)
    yield from authorship.not_permitted(author, asking.ask(options), policy)
