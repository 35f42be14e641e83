"""RestApi: slurmrestd."""

from typing import Annotated, Final

from msgspec import Meta

from slurmoperator.objects import parts
from slurmoperator.objects.parts import (
    ConditionsOnly,
    Free,
    ObjectReference,
    PodTemplatePart,
    Replicas,
    ServicePart,
)
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata


class RestApiSpec(ObjectStruct, frozen=True):
    """A Slurm cluster's slurmrestd."""

    controller_ref: Annotated[
        ObjectReference, Meta(description="The Controller of this slurmrestd.")
    ]
    replicas: Annotated[Replicas, Meta(description="Number of slurmrestd pods.")] = 1
    slurmrestd: Annotated[
        Free | None, Meta(description="Overrides for the slurmrestd container.")
    ] = None
    template: Annotated[PodTemplatePart | None, Meta(description="Overrides for the pods.")] = None
    service: Annotated[ServicePart | None, Meta(description="Overrides for the Service.")] = None


REST_API_RULES: Final = (parts.CONTROLLER_STAYS,)


class RestApiObject(ObjectStruct, frozen=True):
    """A Slurm cluster's slurmrestd."""

    metadata: ObjectMetadata
    spec: RestApiSpec
    status: ConditionsOnly = ConditionsOnly()
