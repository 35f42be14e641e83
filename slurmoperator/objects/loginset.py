"""LoginSet: pods to which users log in."""

from typing import Annotated, Final

from msgspec import Meta

from slurmoperator.objects import parts
from slurmoperator.objects.parts import (
    ConditionsOnly,
    Free,
    KeyOfObject,
    NamedObject,
    PodTemplatePart,
    Replicas,
    ServicePart,
)
from slurmruntime.crd.conditions import Number
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata


class LoginSetSpec(ObjectStruct, frozen=True):
    """Pods with Slurm's commands, to which users log in."""

    controller_ref: Annotated[NamedObject, Meta(description="The Controller they belong to.")]
    sssd_conf_ref: Annotated[
        KeyOfObject, Meta(description="Secret with sssd.conf, which knows the users.")
    ]
    replicas: Annotated[Replicas, Meta(description="How many there are.")] = 1
    login: Annotated[Free | None, Meta(description="The container.")] = None
    initconf: Annotated[Free | None, Meta(description="The container that prepares files.")] = None
    template: Annotated[PodTemplatePart | None, Meta(description="Of the pods.")] = None
    root_ssh_authorized_keys: Annotated[str, parts.conf("Who may log in as root.")] = ""
    extra_sshd_config: Annotated[str, parts.conf("Lines of sshd_config.")] = ""
    strategy: Annotated[Free | None, Meta(description="How a Deployment is updated.")] = None
    service: Annotated[ServicePart | None, Meta(description="Of the pods.")] = None


LOGIN_SET_RULES: Final = (parts.CONTROLLER_STAYS,)


class LoginSetStatus(ConditionsOnly, frozen=True):
    """How the pods stand; written by slurm-operator only."""

    replicas: Number = 0
    selector: str = ""


class LoginSetObject(ObjectStruct, frozen=True):
    """Pods with Slurm's commands, to which users log in."""

    metadata: ObjectMetadata
    spec: LoginSetSpec
    status: LoginSetStatus = LoginSetStatus()
