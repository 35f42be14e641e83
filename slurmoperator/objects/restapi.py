"""RestApi: slurmrestd."""

from typing import Annotated, Final

from slurmoperator.objects import parts
from slurmoperator.objects.parts import (
    ConditionsOnly,
    Free,
    ObjectReference,
    PodTemplatePart,
    Replicas,
    ServicePart,
    note,
)
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata


class RestApiSpec(ObjectStruct, frozen=True):
    """A Slurm cluster's slurmrestd."""

    controller_ref: Annotated[ObjectReference, note("The Controller of this slurmrestd.")]
    replicas: Annotated[Replicas, note("Number of slurmrestd pods.")] = 1
    slurmrestd: Annotated[Free | None, note("Overrides for the slurmrestd container.")] = None
    template: Annotated[PodTemplatePart | None, note("Overrides for the pods.")] = None
    service: Annotated[ServicePart | None, note("Overrides for the Service.")] = None


REST_API_RULES: Final = (parts.CONTROLLER_STAYS,)


class RestApiObject(ObjectStruct, frozen=True):
    """A Slurm cluster's slurmrestd."""

    metadata: ObjectMetadata
    spec: RestApiSpec
    status: ConditionsOnly = ConditionsOnly()
