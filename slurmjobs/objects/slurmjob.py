"""SlurmJob objects, and how to decode them from JSON."""

from typing import Final

import msgspec

from slurmjobs.objects.spec import SlurmJobSpec
from slurmjobs.objects.status import SlurmJobStatus
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.values.faults import Fault

GROUP: Final = "slurm-bridge.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "SlurmJob"
PLURAL: Final = "slurmjobs"

CONTROLLER: Final = "slurm-bridge.dev/slurmjob-controller"
"""The value of `spec.managedBy` for objects that are ours, which is also the default."""


Json = bytes | msgspec.Raw


class JobResource:
    """A resource whose objects are SlurmJobs: our own, or one that is translated."""

    def __init__(self, api_version: str, kind: str, plural: str) -> None:
        self.api_version = api_version
        self.kind = kind
        self.plural = plural

    def read(self, body: Json) -> "SlurmJobObject":
        """Decode an object.

        Raises:
            msgspec.ValidationError: It is not of this kind; the message names the first field at fault.
            msgspec.DecodeError: It is not JSON.
        """
        return _decoder.decode(body)


class SlurmJobObject(ObjectStruct, frozen=True):
    """A batch job in Kubernetes."""

    metadata: ObjectMetadata
    spec: SlurmJobSpec
    status: SlurmJobStatus = SlurmJobStatus()

    @property
    def resource(self) -> JobResource:
        """The object's resource in the API."""
        return OURS

    @property
    def faults(self) -> tuple[Fault, ...]:
        """For a translated object, why it cannot be a SlurmJob."""
        return ()

    @property
    def only_rule(self) -> str:
        """The only policy rule that it may run under; "" for any."""
        return ""

    def status_body(self, status: SlurmJobStatus) -> dict[str, object]:
        """Return the status in the form of the object's own resource."""
        fields: dict[str, object] = msgspec.to_builtins(status)
        return fields

    @property
    def full_name(self) -> str:
        """Namespace and name, or the prefix of its future name, for messages."""
        return self.metadata.full_name

    @property
    def is_ours(self) -> bool:
        """Check whether `spec.managedBy` names no other controller."""
        return self.spec.managed_by in (None, CONTROLLER)


class _Head(ObjectStruct, frozen=True):
    metadata: ObjectMetadata


_decoder = msgspec.json.Decoder(SlurmJobObject)
_head = msgspec.json.Decoder(_Head)


def read_metadata(body: Json) -> ObjectMetadata:
    """Decode only the metadata, of an object that has not been validated yet.

    Raises:
        msgspec.ValidationError: It has none; the message names the first field at fault.
        msgspec.DecodeError: It is not JSON.
    """
    return _head.decode(body).metadata


OURS: Final = JobResource(API_VERSION, KIND, PLURAL)
