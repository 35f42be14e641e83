"""LoginSet: pods that users log in to."""

from typing import Annotated, Final

from slurmoperator.objects import parts
from slurmoperator.objects.parts import (
    ConditionsOnly,
    Free,
    KeyOfObject,
    ObjectReference,
    PodTemplatePart,
    Replicas,
    ServicePart,
    note,
)
from slurmruntime.crd.conditions import Number
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata


class LoginSetSpec(ObjectStruct, frozen=True):
    """Pods with Slurm's commands that users log in to."""

    controller_ref: Annotated[ObjectReference, note("The Controller of these pods.")]
    sssd_conf_ref: Annotated[KeyOfObject, note("Secret with sssd.conf, which defines the users.")]
    replicas: Annotated[Replicas, note("Number of pods.")] = 1
    login: Annotated[Free | None, note("Overrides for the login container.")] = None
    initconf: Annotated[Free | None, note("Overrides for the container that prepares files.")] = (
        None
    )
    template: Annotated[PodTemplatePart | None, note("Overrides for the pods.")] = None
    root_ssh_authorized_keys: Annotated[str, parts.conf("Lines of root's authorized_keys.")] = ""
    extra_sshd_config: Annotated[str, parts.conf("Extra lines for sshd_config.")] = ""
    strategy: Annotated[Free | None, note("Update strategy of the Deployment.")] = None
    service: Annotated[ServicePart | None, note("Overrides for the Service.")] = None


LOGIN_SET_RULES: Final = (parts.CONTROLLER_STAYS,)


class LoginSetStatus(ConditionsOnly, frozen=True):
    """Status of the pods; only slurm-operator writes it."""

    replicas: Number = 0
    selector: str = ""


class LoginSetObject(ObjectStruct, frozen=True):
    """Pods with Slurm's commands that users log in to."""

    metadata: ObjectMetadata
    spec: LoginSetSpec
    status: LoginSetStatus = LoginSetStatus()
