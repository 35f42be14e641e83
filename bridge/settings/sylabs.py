"""Settings of old manifests, written for Sylabs' operators (docs/sylabs.md)."""

import re
from collections.abc import Iterable, Iterator

from pydantic import Field

from slurmruntime.settings.values import Section, TextMap

_PLACE = re.compile(r"([A-Za-z0-9.:-]+:)?/.*")
_CLAIM = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?(/(?!.*(^|/)\.\.(/|$)).*)?")


class SylabsSection(Section):
    """Old manifests, written for Sylabs' operators: docs/sylabs.md."""

    enabled: bool = Field(
        default=False,
        description="Whether SlurmJob of slurm.sylabs.io and SlurmJob and WlmJob of wlm.sylabs.io are served; needs slurm_jobs.enabled.",
    )
    constraints: TextMap = Field(
        default_factory=dict,
        description="Entries `label=value` of a nodeSelector, and the node features that each requires, as in --constraint; "
        "empty: none.",
    )
    ssh_rules: TextMap = Field(
        default_factory=dict,
        description="Users of spec.ssh, and the policy rule that decides whose jobs those are; others are refused.",
    )
    output_claim: str = Field(
        "",
        pattern=r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$",
        description="PersistentVolumeClaim, of this name in every namespace with old manifests, that holds the cluster's folder output_path: their"
        " output is printed from it, and their results are copied from it. Empty: neither.",
    )
    output_path: str = Field(
        "",
        max_length=1024,
        pattern="^(/[^/].*)?$",
        description="The folder of the cluster's nodes that output_claim holds, such as /scratch.",
    )
    volumes: TextMap = Field(
        default_factory=dict,
        description="Volumes to which old manifests copy results, `/path` of a hostPath or `server:/path` of an nfs, and the"
        " claim, or `claim/folder`, to use instead; subfolders are kept. Results for other volumes are not copied.",
    )


def problems(configured: SylabsSection, *, served: bool, rules: Iterable[str]) -> Iterator[str]:
    """Yield what is wrong with the section in combination with others.

    Args:
        served: whether SlurmJobs are served.
        rules: the names of the policy's rules.
    """
    if configured.enabled and not served:
        yield "sylabs.enabled needs slurm_jobs.enabled: old manifests become SlurmJobs"
    if bool(configured.output_claim) != bool(configured.output_path):
        yield "sylabs.output_claim and sylabs.output_path go together: the claim, and the cluster's folder that it holds"
    if configured.volumes and not configured.output_claim:
        yield "sylabs.volumes needs sylabs.output_claim: results are read from it"
    for place, claim in configured.volumes.items():
        if not _PLACE.fullmatch(place):
            yield f"sylabs.volumes[{place}]: expected /path or server:/path"
        if not _CLAIM.fullmatch(claim):
            yield f"sylabs.volumes[{place}]: expected a claim or claim/folder, found {claim}"
    known = frozenset(rules)
    for user, rule in configured.ssh_rules.items():
        if rule not in known:
            yield f"sylabs.ssh_rules[{user}]: there is no policy rule {rule}"
