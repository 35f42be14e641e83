"""A SlurmJob as a whole, and how one is read from JSON."""

from typing import Final

import msgspec

from bridge.crd.fields import ObjectStruct
from bridge.crd.metadata import ObjectMetadata
from jobs.objects.spec import SlurmJobSpec
from jobs.objects.status import SlurmJobStatus

GROUP: Final = "slurm-bridge.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "SlurmJob"
PLURAL: Final = "slurmjobs"

CONTROLLER: Final = "slurm-bridge.dev/slurmjob-controller"
"""What `spec.managedBy` says of objects that are ours; absent, it means the same."""


class SlurmJobObject(ObjectStruct, frozen=True):
    """A batch job in Kubernetes."""

    metadata: ObjectMetadata
    spec: SlurmJobSpec
    status: SlurmJobStatus = SlurmJobStatus()

    @property
    def full_name(self) -> str:
        """For people: namespace and name, or the prefix of the name it will get."""
        return self.metadata.full_name

    @property
    def is_ours(self) -> bool:
        """Check whether no other controller is named."""
        return self.spec.managed_by in (None, CONTROLLER)


class _Head(ObjectStruct, frozen=True):
    metadata: ObjectMetadata


_decoder = msgspec.json.Decoder(SlurmJobObject)
_head = msgspec.json.Decoder(_Head)


def read_metadata(body: bytes | msgspec.Raw) -> ObjectMetadata:
    """Read the metadata alone, of an object that nobody has looked at yet.

    Raises:
        msgspec.ValidationError: It has none; the message names the first field at fault.
        msgspec.DecodeError: It is no JSON.
    """
    return _head.decode(body).metadata


def read(body: bytes | msgspec.Raw) -> SlurmJobObject:
    """Read an object.

    Raises:
        msgspec.ValidationError: It is no SlurmJob; the message names the first field at fault.
        msgspec.DecodeError: It is no JSON.
    """
    return _decoder.decode(body)
