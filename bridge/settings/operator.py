"""Settings of slurm-operator (docs/operator.md)."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from slurmruntime.model.objects import JsonDict
from slurmruntime.settings.values import Section, TextMap, parse_json, split


class OperatorSection(Section):
    """slurm-operator, Slurm itself as Kubernetes objects: docs/operator.md."""

    controller: str = Field(
        "",
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$",
        description="A Controller, as namespace/name, to reach at slurm.url with slurm.token_file, because the key that signs "
        "its tokens is not in this cluster. All others are reached through their RestApi, with tokens signed by their key.",
    )
    image: str = Field(
        "",
        pattern=r"^(.*\{daemon\}.*)?$",
        description="Image of daemons whose objects name none; {daemon} stands for slurmctld, slurmd, slurmdbd, "
        "slurmrestd or login. Empty: every object must name its image.",
    )
    priority_class: str = Field(
        "",
        pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$",
        description="PriorityClass of Slurm's pods whose templates name none. Without one, they are evicted under memory pressure like any other pod, with their "
        "jobs. It must exist, or no pod is created. The chart sets it to the one that it creates (priorityClass).",
    )
    tls_image: str = Field(
        "",
        pattern=r"^\S*$",
        description="Image with haproxy 3.1 or newer, which terminates TLS in front of slurmrestd; empty: slurmrestd's own image, which must contain it, as ours does.",
    )
    network_policies: bool = Field(
        default=False,
        description="Create NetworkPolicies that limit who may connect to Slurm's daemons (docs/operator.md); the cluster's network plugin must enforce them.",
    )
    network_peers: Annotated[tuple[JsonDict, ...], BeforeValidator(parse_json)] = Field(
        (),
        description="NetworkPolicyPeers that may connect wherever a cluster's own daemons may, in addition to the namespace of slurm-operator: Prometheus, "
        "clients of slurmrestd, daemons outside Kubernetes.",
    )
    domain: str = Field(
        "cluster.local",
        pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        description="The Kubernetes cluster's DNS domain.",
    )
    namespaces: Annotated[tuple[str, ...], BeforeValidator(split)] = Field(
        (),
        description="The namespaces whose objects are served; empty: all. The chart sets it from its value namespaces, "
        "which also limits the program's rights to them.",
    )
    token_users: TextMap = Field(
        default_factory=dict,
        description="Namespaces, and the comma-separated Slurm users for whom Tokens are issued there; * means all but "
        "root, slurm and numeric user ids, which must be listed. Empty: no Token is issued.",
    )
    token_longest_s: int = Field(
        86_400, ge=10, le=2**31 - 1, description="The longest lifetime of a Token, in seconds."
    )
