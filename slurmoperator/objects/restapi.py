"""RestApi: slurmrestd."""

from typing import Annotated, Final

from msgspec import Meta

from slurmoperator.objects import parts
from slurmoperator.objects.parts import (
    ConditionsOnly,
    Free,
    NamedObject,
    PodTemplatePart,
    Replicas,
    ServicePart,
)
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata


class RestApiSpec(ObjectStruct, frozen=True):
    """A Slurm cluster's slurmrestd."""

    controller_ref: Annotated[NamedObject, Meta(description="The Controller it belongs to.")]
    replicas: Annotated[Replicas, Meta(description="How many there are.")] = 1
    slurmrestd: Annotated[Free | None, Meta(description="The container.")] = None
    template: Annotated[PodTemplatePart | None, Meta(description="Of the pods.")] = None
    service: Annotated[ServicePart | None, Meta(description="Of the pods.")] = None


REST_API_RULES: Final = (parts.CONTROLLER_STAYS,)


class RestApiObject(ObjectStruct, frozen=True):
    """A Slurm cluster's slurmrestd."""

    metadata: ObjectMetadata
    spec: RestApiSpec
    status: ConditionsOnly = ConditionsOnly()
