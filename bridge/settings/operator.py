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
