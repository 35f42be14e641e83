"""Settings of old manifests, written for Sylabs' operators (docs/sylabs.md)."""

from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import BeforeValidator, Field

from bridge.settings import values
from bridge.settings.values import Section

_Map = Annotated[dict[str, str], BeforeValidator(values.parse_json)]


class SylabsSection(Section):
    """Old manifests, written for Sylabs' operators: docs/sylabs.md."""

    enabled: bool = Field(
        default=False,
        description="Whether SlurmJob of slurm.sylabs.io and SlurmJob and WlmJob of wlm.sylabs.io are served; needs slurm_jobs.enabled.",
    )
    constraints: _Map = Field(
        default_factory=dict,
        description="Entries `label=value` of a nodeSelector, and the node features that each stands for, as after --constraint; "
        "empty: none.",
    )
    ssh_rules: _Map = Field(
        default_factory=dict,
        description="Users of spec.ssh, and the policy rule that decides whose jobs those are; others are refused.",
    )
    inventory_namespace: str = Field(
        "default",
        pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
        description="Namespace of ConfigMap slurm-config, whose labels and resources are written on the nodes.",
    )
    addresses: Annotated[tuple[str, ...], BeforeValidator(values.split)] = Field(
        (),
        description="Hosts, beside that of slurm.url, by which slurm-config may name this Slurm.",
    )


def problems(configured: SylabsSection, *, served: bool, rules: Iterable[str]) -> Iterator[str]:
    """Yield what is wrong with the section in combination with others.

    Args:
        configured: The section.
        served: Whether SlurmJobs are.
        rules: Names of the policy's rules.
    """
    if configured.enabled and not served:
        yield "sylabs.enabled needs slurm_jobs.enabled: old manifests become SlurmJobs"
    known = frozenset(rules)
    for user, rule in configured.ssh_rules.items():
        if rule not in known:
            yield f"sylabs.ssh_rules[{user}]: there is no policy rule {rule}"
