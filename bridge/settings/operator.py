"""Settings of slurm-operator (docs/operator.md)."""

from pydantic import Field

from bridge.settings.values import Section


class OperatorSection(Section):
    """slurm-operator, Slurm itself as Kubernetes objects: docs/operator.md."""

    controller: str = Field(
        "",
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$",
        description="The Controller, as namespace/name, whose slurmrestd slurm.url is; of the workers of other "
        "Controllers it is not known what Slurm says.",
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
