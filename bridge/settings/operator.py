"""Settings of slurm-operator (docs/operator.md)."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from bridge.settings.values import Section, TextMap, split


class OperatorSection(Section):
    """slurm-operator, Slurm itself as Kubernetes objects: docs/operator.md."""

    controller: str = Field(
        "",
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$",
        description="A Controller, as namespace/name, whose slurmrestd is slurm.url, asked with slurm.token_file; for a Slurm "
        "whose key of tokens is not here. Of all others, the RestApi and the key say where and with what.",
    )
    image: str = Field(
        "",
        pattern=r"^(.*\{daemon\}.*)?$",
        description="Image of daemons whose objects name none, with {daemon} in the place of slurmctld, slurmd, slurmdbd, "
        "slurmrestd or login; empty if all objects name theirs.",
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
        description="Namespaces, and the Slurm users, with commas between them, for whom Tokens are made there; * stands for all but "
        "root, slurm and numbers of users, which must be named. Empty: no Token is made.",
    )
    token_longest_s: int = Field(
        86_400, ge=10, le=2**31 - 1, description="The longest lifetime of a Token, in seconds."
    )
